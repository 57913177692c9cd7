import { type RefObject, useEffect, useRef } from "react";
import { useLocation } from "../parts/router.tsx";

/** Set by each navigation to another page, until that page has the focus. */
let isFocusDue = false;

/**
 * Does what browsers do between documents: a new page starts at its top and gets the focus. When the user goes back, the browser
 * restores the scroll position.
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

export function useFocusAfterNavigation(main: RefObject<HTMLElement | null>): void {
  const [location] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: also when one page shows something else.
  useEffect(() => {
    if (!isFocusDue) return;
    isFocusDue = false;
    main.current?.focus({ preventScroll: true });
  }, [location, main]);
}
