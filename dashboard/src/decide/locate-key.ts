/** Finds the line of a key in TOML text, so that an error of the service, which names the key, is shown where the key is written. Pure. */

/** Lines count from 1. Falls back to the nearest table around the key; 1 if nothing of it is in the text. */
export function lineOfKey(text: string, key: string): number {
  const wanted = key.split('.');
  let table: readonly string[] = [];
  let best = { depth: 0, line: 1 };
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[\[?\s*([^\]#]+?)\s*\]\]?/.exec(line)?.[1];
    if (header !== undefined) table = parts(header);
    const own = header === undefined ? parts(/^\s*([A-Za-z0-9_\-."' ]+?)\s*=/.exec(line)?.[1] ?? '') : [];
    if (header === undefined && own.length === 0) continue;
    const depth = sharedDepth([...table, ...own], wanted);
    if (depth > best.depth) best = { depth, line: index + 1 };
  }
  return best.line;
}

/** How many parts of the path lead to what is wanted; 0 if the path goes elsewhere. */
function sharedDepth(path: readonly string[], wanted: readonly string[]): number {
  return path.length <= wanted.length && path.every((part, index) => part === wanted[index]) ? path.length : 0;
}

function parts(dotted: string): readonly string[] {
  return dotted === '' ? [] : dotted.split('.').map((part) => part.trim().replace(/^(["'])(.*)\1$/, '$2'));
}
