/** The calls of the routes for models, and the downloads that they see. What the names stand for is in `test/api/manage/world.ts`. */
import type { PullListing } from '../../../src/api/ports.ts';

export const PULLS: readonly PullListing[] = [
  { id: 'hf:o/r', progress: { what: 'm.gguf', doneBytes: 10, totalBytes: 30, bytesPerSecond: 10 }, failure: undefined },
  { id: 'hf:o/s', progress: undefined, failure: { kind: 'stalled', reason: 'ModelMissing', message: 'Name another one' } },
];

const PULL = 'POST /api/models/{id}/pull';
const SHOW = 'GET /api/models/{id}';
const FIT = 'GET /api/fit';
const SEARCH = 'GET /api/models/search';
const REMOVE = 'DELETE /api/models/{id}';
const URL_BODY = { url: 'https://a.test/m', sha256: 'a'.repeat(64) };

export const MODEL_CALLS = [
  { operation: SHOW, expect: 200, path: '/api/models/demo-fox' },
  { operation: SHOW, expect: 'model.not_found', path: '/api/models/demo-fix' },
  { operation: SHOW, expect: 'request.invalid', path: '/api/models/..%2Fetc' },
  { operation: PULL, expect: 202, path: '/api/models/hf:o%2Fr:Q4_K_M/pull', body: {} },
  { operation: PULL, expect: 202, path: '/api/models/url%2Fm.gguf/pull', body: URL_BODY },
  { operation: PULL, expect: 'model.unavailable', path: '/api/models/none/pull', body: {} },
  { operation: PULL, expect: 'model.source_failed', path: '/api/models/away/pull', body: {} },
  { operation: PULL, expect: 'request.invalid', path: '/api/models/..%2Fetc/pull', body: {} },
  { operation: PULL, expect: 'request.invalid', path: '/api/models/a/pull', body: { url: 'https://a.test/m' } },
  { operation: FIT, expect: 200, path: '/api/fit?model=hf:o%2Fr&context=4096&backend=cpu' },
  { operation: FIT, expect: 'model.unavailable', path: '/api/fit?model=none' },
  { operation: FIT, expect: 'model.source_failed', path: '/api/fit?model=away' },
  { operation: FIT, expect: 'request.invalid', path: '/api/fit?model=..%2Fetc' },
  { operation: FIT, expect: 'request.invalid', path: '/api/fit?model=a&context=x' },
  { operation: FIT, expect: 'request.invalid', path: '/api/fit' },
  { operation: SEARCH, expect: 200, path: '/api/models/search?q=qwen3%204b&limit=1&cursor=ey' },
  { operation: SEARCH, expect: 'model.search_unavailable', path: '/api/models/search?q=off' },
  { operation: SEARCH, expect: 'model.source_failed', path: '/api/models/search?q=away' },
  { operation: SEARCH, expect: 'request.invalid', path: '/api/models/search' },
  { operation: SEARCH, expect: 'request.invalid', path: '/api/models/search?q=%20' },
  { operation: SEARCH, expect: 'request.invalid', path: '/api/models/search?q=a%00b' },
  { operation: SEARCH, expect: 'request.invalid', path: `/api/models/search?q=${'a'.repeat(101)}` },
  { operation: SEARCH, expect: 'request.invalid', path: '/api/models/search?q=a&limit=21' },
  { operation: SEARCH, expect: 'request.invalid', path: '/api/models/search?q=a&cursor=a%0Ab' },
  { operation: REMOVE, expect: 204, path: '/api/models/hf:o%2Fr' },
  { operation: REMOVE, expect: 'model.not_found', path: '/api/models/none' },
  { operation: REMOVE, expect: 'model.in_use', path: '/api/models/used' },
  { operation: REMOVE, expect: 'model.unavailable', path: '/api/models/stuck' },
  { operation: REMOVE, expect: 'request.invalid', path: '/api/models/%00' },
] as const;
