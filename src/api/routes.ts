/** The route table. Registration, access checks, `Allow` headers and the OpenAPI document are all derived from it. */
import { z } from 'zod';
import { json } from './server/answer.ts';
import { defineRoute, NoInput, type DocumentedRoute } from './server/define-route.ts';
import { createCaptureRoutes } from './manage/capture-routes.ts';
import { createChangeRoutes } from './manage/change-routes.ts';
import { createEventRoutes } from './manage/event-routes.ts';
import { createImageRoutes } from './manage/image-routes.ts';
import { createInventoryRoutes, createSystemRoutes } from './manage/system-routes.ts';
import { createModelRoutes } from './manage/model-routes.ts';
import type { ManageDeps } from './manage/manage-deps.ts';
import { createRecordRoutes } from './manage/record-routes.ts';
import { createProfileRoutes } from './manage/profile-routes.ts';
import { createSlotInsightRoutes } from './manage/slot-insight-routes.ts';
import { createRevisionRoutes } from './manage/revision-routes.ts';
import { createSourceRoutes } from './manage/source-routes.ts';
import { createSlotRoutes } from './manage/slot-routes.ts';
import { createTokenRoutes } from './manage/token-routes.ts';
import { createUsageRoute } from './manage/usage-routes.ts';
import { createPlanRoutes } from './mcp/plan-routes.ts';

const OpenApi = z.looseObject({ openapi: z.string(), info: z.looseObject({}), paths: z.looseObject({}), components: z.looseObject({}) });

export function createRoutes(v1: readonly DocumentedRoute[], deps: ManageDeps): readonly DocumentedRoute[] {
  const routes: DocumentedRoute[] = [
    ...v1,
    ...createSystemRoutes(deps),
    ...createSlotRoutes(deps),
    ...createSlotInsightRoutes(deps),
    ...createRevisionRoutes(deps),
    ...createSourceRoutes(deps),
    ...createChangeRoutes(deps),
    ...createPlanRoutes(deps.plans),
    ...createProfileRoutes(deps),
    ...createEventRoutes(deps),
    ...createInventoryRoutes(deps),
    ...createRecordRoutes(deps),
    ...createCaptureRoutes(deps),
    ...createModelRoutes(deps),
    ...createImageRoutes(deps.images),
    ...createTokenRoutes(deps.tokens),
    createUsageRoute(deps),
  ];
  let document: z.output<typeof OpenApi> | undefined;
  routes.push(
    defineRoute('GET', '/api/openapi.json', 'read', {
      tag: 'system',
      summary: 'Describes this API as an OpenAPI document',
      input: NoInput,
      answers: { 200: json('An OpenAPI 3.1 document', OpenApi) },
      // Few services are ever asked for it, and its schemas take memory.
      async handler() {
        const { openApiDocument } = await import('./openapi/document.ts');
        return { status: 200, body: (document ??= openApiDocument(routes, deps.manage.version)) };
      },
    }),
  );
  return routes;
}
