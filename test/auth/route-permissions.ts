/**
 * Who may use which route with authentication on, written from the specification (its open routes, and its scopes) and from the contract with users, not from the sources. A route that is not in this table
 * fails the test that walks it, so whoever adds a route decides here as well.
 */
import type { Scope } from '../../src/schema/words/access.ts';

/** `everyone`: also without a credential. */
export type Permission = 'everyone' | readonly Scope[];

const EVERYONE = 'everyone';
const EVERY_SCOPE: Permission = ['admin', 'all', 'v1-only', 'read-only'];
const INFERENCE: Permission = ['admin', 'all', 'v1-only'];
const READ: Permission = ['admin', 'all', 'read-only'];
/** Lines of logs may contain what clients have sent. */
const LOGS: Permission = ['admin', 'all'];
const ADMIN: Permission = ['admin'];

export const PERMISSIONS: Readonly<Record<string, Permission>> = {
  // Open: liveness, metrics, what a page must know before a login, and the page itself.
  'GET /api/health/system': EVERYONE,
  'GET /api/health/ready': EVERYONE,
  'GET /api/status': EVERYONE,
  'GET /api/metrics': EVERYONE,
  'GET /api/features': EVERYONE,
  'GET /api/install/state': EVERYONE,
  'POST /api/install/complete': EVERYONE,
  'GET /api/config/urls': EVERYONE,
  'GET /api/auth/status': EVERYONE,
  'POST /api/auth/login': EVERYONE,
  // A webhook has a signature instead of a credential; without one, the handler wants an administrator.
  'POST /api/source/sync': EVERYONE,
  'GET /v1/models': EVERYONE,
  'GET /ollama/api/tags': EVERYONE,
  'GET /ollama/api/version': EVERYONE,
  'GET /': EVERYONE,
  'GET /assets/page-1.js': EVERYONE,
  // Inference.
  'POST /v1/chat/completions': INFERENCE,
  'POST /v1/completions': INFERENCE,
  'POST /v1/embeddings': INFERENCE,
  'POST /v1/responses': INFERENCE,
  'POST /v1/messages': INFERENCE,
  'POST /v1/messages/count_tokens': INFERENCE,
  'POST /v1/rerankings': INFERENCE,
  'POST /v1/rerank': INFERENCE,
  'POST /v1/reranking': INFERENCE,
  'POST /rerank': INFERENCE,
  'POST /v2/rerank': INFERENCE,
  'POST /v1/audio/transcriptions': INFERENCE,
  'POST /v1/audio/translations': INFERENCE,
  'POST /v1/audio/speech': INFERENCE,
  'GET /v1/audio/voices': INFERENCE,
  'GET /v1/realtime': INFERENCE,
  'POST /v1/images/generations': INFERENCE,
  'POST /v1/images/edits': INFERENCE,
  'POST /v1/images/variations': INFERENCE,
  'GET /v1/models/*': INFERENCE,
  'POST /v1/tokenize': INFERENCE,
  'POST /v1/detokenize': INFERENCE,
  'POST /infill': INFERENCE,
  'POST /v1/score': INFERENCE,
  'POST /v1/classify': INFERENCE,
  // It names files of the host.
  'GET /props': LOGS,
  'POST /ollama/api/chat': INFERENCE,
  'POST /ollama/api/generate': INFERENCE,
  'POST /ollama/api/embed': INFERENCE,
  'POST /ollama/api/show': INFERENCE,
  'GET /ollama/api/ps': INFERENCE,
  'GET /api/images/cache/:file': EVERY_SCOPE,
  // Reads of slots, models and hardware.
  'GET /api/slots': READ,
  'GET /api/slots/:name': READ,
  'GET /api/slots/:name/timeline': READ,
  'GET /api/slots/:name/revisions': READ,
  'GET /api/slots/:name/explain': READ,
  'GET /api/source': READ,
  'GET /api/profiles': READ,
  'GET /api/profiles/:name': READ,
  'GET /api/events': READ,
  'GET /api/models': READ,
  'GET /api/models/:id': READ,
  'GET /api/models/search': READ,
  'GET /api/pulls': READ,
  'GET /api/providers': READ,
  'GET /api/hardware': READ,
  'GET /api/cluster': READ,
  'GET /api/fit': READ,
  'GET /api/openapi.json': READ,
  // Each tool has the access of its route.
  'POST /mcp': READ,
  'GET /api/slots/:name/logs': LOGS,
  // It names callers.
  'GET /api/requests': LOGS,
  'GET /api/usage': LOGS,
  // Changes, and everything about tokens.
  'POST /v1/audio/voices': ADMIN,
  'DELETE /v1/audio/voices/:name': ADMIN,
  'GET /api/slots/:name/text': ADMIN,
  'PUT /api/slots/:name': ADMIN,
  'PATCH /api/slots/:name': ADMIN,
  'DELETE /api/slots/:name': ADMIN,
  'POST /api/slots/:name/load': ADMIN,
  'POST /api/slots/:name/unload': ADMIN,
  'POST /api/slots/:name/restart': ADMIN,
  'POST /api/slots/:name/undo': ADMIN,
  'GET /api/source/diff': ADMIN,
  'POST /api/source/suspend': ADMIN,
  'POST /api/source/resume': ADMIN,
  'PUT /api/profiles/:name': ADMIN,
  'POST /api/profiles/:name/apply': ADMIN,
  'DELETE /api/profiles/:name': ADMIN,
  'POST /api/plan': ADMIN,
  'POST /api/apply': ADMIN,
  'POST /api/models/:id/pull': ADMIN,
  'DELETE /api/models/:id': ADMIN,
  'GET /api/mcp/plans': ADMIN,
  'POST /api/mcp/plans/:id/approve': ADMIN,
  'POST /api/mcp/plans/:id/reject': ADMIN,
  'GET /api/audit': ADMIN,
  'DELETE /api/requests/:id': ADMIN,
  // What requests contained, encrypted; also that there is such a file.
  'POST /api/captures': ADMIN,
  'GET /api/captures': ADMIN,
  'GET /api/captures/:id': ADMIN,
  'POST /api/captures/:id/stop': ADMIN,
  'DELETE /api/captures/:id': ADMIN,
  'GET /api/auth/tokens': ADMIN,
  'POST /api/auth/tokens': ADMIN,
  'PATCH /api/auth/tokens/:id': ADMIN,
  'DELETE /api/auth/tokens/:id': ADMIN,
  // A session of the chat page is a token for inference, and whoever begins one is somebody whom the proxy knows.
  'GET /api/auth/chat': ADMIN,
  'GET /api/auth/session': INFERENCE,
  'GET /upstream/:slot/*': ADMIN,
  'POST /upstream/:slot/*': ADMIN,
  'PUT /upstream/:slot/*': ADMIN,
  'PATCH /upstream/:slot/*': ADMIN,
  'DELETE /upstream/:slot/*': ADMIN,
};
