/** The routes of the dashboard for the world of these tests. */
import { createDashboardRoutes, readPageFiles } from '../../../src/api/manage/dashboard-routes.ts';
import type { Route } from '../../../src/api/server/define-route.ts';

/** `directory`: of the built dashboard. Undefined: it is not served. */
export function pageRoutes(directory: string | undefined): readonly Route[] {
  return directory === undefined ? [] : createDashboardRoutes(readPageFiles(directory));
}
