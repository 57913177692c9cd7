import * as react from "react";

/** What JSX is compiled to. */
export const { createElement: h, Fragment: F } = react;
