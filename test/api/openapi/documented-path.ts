import type { Route } from '../../../src/api/server/define-route.ts';

/** The path of a route as the OpenAPI document writes it. */
export function documentedPath({ path }: Pick<Route, 'path'>): string {
  return path.replace(/:(\w+)/g, '{$1}').replace('*', '{rest}');
}
