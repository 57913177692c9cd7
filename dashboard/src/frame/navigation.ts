import { type RefObject, useEffect, useRef } from "react";
import { useLocation } from "wouter";

/** Set by each step to another page, until that page has the focus. */
let isFocusDue = false;

/**
 * What a browser does by itself between documents: a new page begins at its top, and with the focus in it. Going back leaves the
 * place to the browser, which knows where it was.
 */
export function useNavigation(): void {
  const [location] = useLocation();
  const last = useRef(location);
  const isBack = useRef(false);
  useEffect(() => {
    const back = () => {
      isBack.current = true;
    };
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  if (location !== last.current) isFocusDue = true;
  useEffect(() => {
    if (location === last.current) return;
    last.current = location;
    if (!isBack.current) scrollTo({ top: 0 });
    isBack.current = false;
  }, [location]);
}

/** `isReady`: the page is there, and not only what is shown until it is loaded. */
export function useFocusAfterNavigation(main: RefObject<HTMLElement | null>, isReady: boolean): void {
  const [location] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: also when one page shows something else.
  useEffect(() => {
    if (!isReady || !isFocusDue) return;
    isFocusDue = false;
    main.current?.focus({ preventScroll: true });
  }, [location, isReady, main]);
}
