/** Lists the methods of a path: for `Allow`, and to distinguish a wrong method from a wrong path. Used only if no route matched. */
import type { Route } from './route.ts';

export function createAllowedMethods(routes: readonly Route[]): (url: string) => readonly string[] {
  const patterns = routes.map((route) => ({ method: route.method, parts: route.path.split('/') }));
  return (url) => {
    const parts = pathOf(url).split('/');
    const methods = new Set<string>();
    for (const pattern of patterns) {
      if (!matches(pattern.parts, parts)) continue;
      methods.add(pattern.method);
      if (pattern.method === 'GET') methods.add('HEAD');
    }
    if (methods.size > 0) methods.add('OPTIONS');
    return [...methods].toSorted();
  };
}

function pathOf(url: string): string {
  const query = url.search(/[?#]/);
  const path = query === -1 ? url : url.slice(0, query);
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

function matches(pattern: readonly string[], parts: readonly string[]): boolean {
  for (const [index, part] of pattern.entries()) {
    if (part === '*') return parts.length > index;
    const given = parts[index];
    if (given === undefined) return false;
    if (part.startsWith(':') ? given === '' : part !== given) return false;
  }
  return parts.length === pattern.length;
}
