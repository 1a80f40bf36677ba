/** Boards with slots whose status has parts that a ready slot does not have. */
import type { Board } from '../../../src/reconciler/board.ts';
import { SlotName } from '../../../src/schema/words/names.ts';

const PRIMARY = SlotName.parse('primary');

/** The slot is downloading its model. */
export function publishPull(board: Board): void {
  const view = board.current();
  const entry = view.slots.get(PRIMARY);
  if (entry === undefined) throw new Error('There is no slot');
  const status = { ...entry.status, state: 'pulling', progress: { what: 'a.gguf', doneBytes: 1 } } as const;
  board.publish({ ...view, version: view.version + 1, slots: new Map([[PRIMARY, { ...entry, status }]]) });
}

/** The slot has never had a valid document. */
export function publishRefused(board: Board): void {
  const view = board.current();
  const problems = [{ path: ['model', 'default'], message: 'Write a string', file: 'primary.toml', line: 1, column: 2 }];
  board.publish({ ...view, version: view.version + 1, slots: new Map(), refused: new Map([[PRIMARY, problems]]) });
}

/** Limits that calls reach, and plans of agents. */
export const SETTINGS = {
  SVC_PARK_TIMEOUT: '100ms',
  SVC_PARK_LIMIT: '1',
  SVC_BODY_LIMIT: '1Mi',
  SVC_FIRST_BYTE_TIMEOUT: '1s',
  SVC_VOICE_LIMIT: '1',
  SVC_MCP: 'on',
  SVC_MCP_APPROVE: 'human',
};
