/** Calls of the route of realtime sessions without a change of protocol: each is answered with an error. */
const OPERATION = 'GET /v1/realtime';

export const REALTIME_CALLS = [
  { operation: OPERATION, expect: 'request.invalid', path: '/v1/realtime?intent=other' },
  { operation: OPERATION, expect: 'model.not_found', path: '/v1/realtime?model=none' },
  { operation: OPERATION, expect: 'model.unsupported', path: '/v1/realtime?model=primary' },
] as const;
