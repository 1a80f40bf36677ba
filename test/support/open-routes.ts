/** The open routes of the specification (section 4) under `/api`, and readiness, for probes of load balancers and kubelets, which have no credentials. */
export const OPEN_ROUTES: readonly string[] = [
  'GET /api/health/system',
  'GET /api/health/ready',
  'GET /api/status',
  'GET /api/metrics',
  'GET /api/features',
  'GET /api/install/state',
  'POST /api/install/complete',
  'GET /api/config/urls',
  'GET /api/auth/status',
  'POST /api/auth/login',
  // It checks the signature of a webhook, or the scope of its caller.
  'POST /api/source/sync',
];
