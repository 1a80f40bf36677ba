/** The route table. Registration, access checks, `Allow` headers and the OpenAPI document are all derived from it. */
import { createChangeRoutes } from './manage/change-routes.ts';
import { createEventRoutes } from './manage/event-routes.ts';
import { createInventoryRoutes } from './manage/inventory-routes.ts';
import type { ManageDeps } from './manage/manage-deps.ts';
import { createSlotInsightRoutes } from './manage/slot-insight-routes.ts';
import { createSlotRoutes } from './manage/slot-routes.ts';
import { createSystemRoutes } from './manage/system-routes.ts';
import { openApiDocument } from './openapi.ts';
import type { Route } from './route.ts';

/** Returns the OpenAI routes as given, everything under `/api`, and the document that describes both. */
export function createRoutes(v1: readonly Route[], deps: ManageDeps): readonly Route[] {
  const routes: Route[] = [
    ...v1,
    ...createSystemRoutes(deps),
    ...createSlotRoutes(deps),
    ...createSlotInsightRoutes(deps),
    ...createChangeRoutes(deps),
    ...createEventRoutes(deps),
    ...createInventoryRoutes(deps),
  ];
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
