import { type ReactNode, useState } from "react";
import { CopyButton } from "./copy.tsx";

interface SnippetProps<Language extends string> {
  readonly title: string;
  readonly languages: readonly [Language, ...Language[]];
  readonly textIn: (language: Language) => string;
  /** Further choices, before that of the language. */
  readonly children?: ReactNode;
}

/** A program to paste, in several languages. */
export function Snippet<Language extends string>(props: SnippetProps<Language>) {
  const { title, languages, textIn, children } = props;
  const [language, setLanguage] = useState(languages[0]);
  const text = textIn(language);
  return (
    <div className="snip">
      <div className="cell-head">
        <h2>{title}</h2>
        {children}
        <Switch
          name="language"
          legend="Language"
          choices={languages}
          value={language}
          onChange={setLanguage}
        />
        <CopyButton text={() => text} what={language} />
      </div>
      <div className="well">
        <pre className="code" tabIndex={0} role="region" aria-label={`${title}, ${language}`}>
          {text}
        </pre>
      </div>
    </div>
  );
}

interface SwitchProps<Value extends string> {
  readonly name: string;
  readonly legend: string;
  readonly choices: readonly Value[];
  readonly value: Value;
  readonly onChange: (value: Value) => void;
}

/** A choice of a few words, side by side. */
export function Switch<Value extends string>({ name, legend, choices, value, onChange }: SwitchProps<Value>) {
  return (
    <fieldset className="seg">
      <legend className="vh">{legend}</legend>
      {choices.map((each) => (
        <label key={each}>
          <input type="radio" name={name} checked={each === value} onChange={() => onChange(each)} />
          {each}
        </label>
      ))}
    </fieldset>
  );
}
