// SPDX-License-Identifier: Apache-2.0
//
// The page's parts in one place (web/vendor.lock says which): a tree of text and elements, never a string of markup.

import { h, render, Component } from "./preact.js";
import htm from "./htm.js";

export { render, Component };
export { useState, useEffect, useRef, useMemo, useCallback, useLayoutEffect } from "./hooks.js";
export const html = htm.bind(h);
