/** All routes under `/api`. */
import type { Route } from '../route.ts';
import { createChangeRoutes } from './change-routes.ts';
import { createEventRoutes } from './event-routes.ts';
import { createInventoryRoutes } from './inventory-routes.ts';
import type { ManageDeps } from './manage-deps.ts';
import { createSlotInsightRoutes } from './slot-insight-routes.ts';
import { createSlotRoutes } from './slot-routes.ts';
import { createSystemRoutes } from './system-routes.ts';

export function createManageRoutes(deps: ManageDeps): readonly Route[] {
  return [
    ...createSystemRoutes(deps),
    ...createSlotRoutes(deps),
    ...createSlotInsightRoutes(deps),
    ...createChangeRoutes(deps),
    ...createEventRoutes(deps),
    ...createInventoryRoutes(deps),
  ];
}
