import { useEffect, useRef } from "react";
import { useLocation } from "wouter";

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
  useEffect(() => {
    if (location === last.current) return;
    last.current = location;
    if (!isBack.current) scrollTo({ top: 0 });
    isBack.current = false;
    document.getElementById("content")?.focus({ preventScroll: true });
  }, [location]);
}
