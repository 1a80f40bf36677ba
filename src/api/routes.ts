/** The route table. Registration, access checks, `Allow` headers and the OpenAPI document are all derived from it. */
import type { ManageDeps } from './manage/manage-deps.ts';
import { createManageRoutes } from './manage/manage-routes.ts';
import { openApiDocument } from './openapi.ts';
import type { Route } from './route.ts';

/** Returns the OpenAI routes as given, everything under `/api`, and the document that describes both. */
export function createRoutes(v1: readonly Route[], deps: ManageDeps): readonly Route[] {
  const routes: Route[] = [...v1, ...createManageRoutes(deps)];
  let document: object | undefined;
  routes.push({
    method: 'GET',
    path: '/api/openapi.json',
    access: 'read',
    tag: 'system',
    summary: 'Describes this API as an OpenAPI document',
    handler: () => (document ??= openApiDocument(routes, deps.manage.version)),
  });
  return routes;
}
