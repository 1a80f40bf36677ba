/** Lists the methods of a path: for `Allow`, and to distinguish a wrong method from a wrong path. Used only if no route matched. */
import type { Route } from './server/route.ts';

export function createAllowedMethods(routes: readonly Route[]): (url: string) => readonly string[] {
  const patterns = routes.map(({ method, path }) => ({ method, pattern: patternOf(path) }));
  return (url) => {
    const path = pathOf(url);
    const methods = patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
    if (methods.length === 0) return [];
    const more = methods.includes('GET') ? ['HEAD', 'OPTIONS'] : ['OPTIONS'];
    return [...new Set([...methods, ...more])].toSorted();
  };
}

/** Matches the paths of a route: ":name" stands for one segment, "*" for the rest. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+').replace('*', '.*')}$`, 's');
}

function pathOf(url: string): string {
  const [path = ''] = url.split(/[?#]/, 1);
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
