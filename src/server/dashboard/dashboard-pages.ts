/** Shown until the files are built. The browser reloads it by itself (`Refresh`). */
export const BUILDING_PAGE = page(
  "The dashboard is being built",
  "This happens once after an installation or a change and takes a few seconds. The page opens by itself.",
);

/** `remedy`: what to do about it. */
export function failedPage(remedy: string): string {
  return page("The dashboard is not available", `${remedy} The API works all the same.`);
}

/** Without styles: the content security policy of the dashboard allows none in a page. */
function page(title: string, text: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · Rota</title>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p>
</main>
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
