import { describe, expect, test } from '@jest/globals';
import { answerOf, progressFacts, viewSlot, viewTimelineEntry } from '../../../../src/api/manage/decide/slot-view.ts';
import { viewPulls } from '../../../../src/api/manage/decide/inventory-view.ts';
import { viewStatus } from '../../../../src/api/manage/decide/status-view.ts';
import type { BoardSlot, BoardView } from '../../../../src/reconciler/board.ts';
import type { StoredSlot } from '../../../../src/schema/slot/slot-editor.ts';
import { Progress } from '../../../../src/schema/status/answers.ts';
import type { SpecProblem } from '../../../../src/schema/slot/spec-problem.ts';
import type { Condition } from '../../../../src/schema/status/slot-status.ts';
import { boardSlot, boardView, slotName } from '../../../gateway/support/board-fixture.ts';

const NAME = slotName('primary');
const PROBLEM: SpecProblem = { path: ['lifecycle', 'idleTimeout'], message: 'Write a duration', file: 'primary.toml', line: 3 };
const CONDITION: Condition = {
  type: 'Ready',
  status: 'True',
  reason: 'ProbePassed',
  message: 'It answers',
  lastTransitionAt: 1_700_000_000_000,
  observedGeneration: 4,
};

function withStatus(status: Partial<BoardSlot['status']>): BoardView {
  const slot = boardSlot({ name: 'primary', model: 'a.gguf', targets: [{ workload: 'w', port: 1 }] });
  const full: BoardSlot = { ...slot, generation: 4, problems: [PROBLEM], status: { ...slot.status, conditions: [CONDITION], ...status } };
  return { ...boardView(1, []), slots: new Map([[NAME, full]]) };
}

describe('downloads', () => {
  const reference = 'registry.example/toolbox:v1';
  const failed: Condition = { ...CONDITION, status: 'False', reason: 'ImagePullFailed', message: '(podman: connection refused)' };

  test.each<[string, Partial<BoardSlot['status']>, readonly object[]]>([
    [
      'an image before its first byte',
      { progress: { what: reference, doneBytes: 0 } },
      [{ failed: false, what: reference, done_bytes: 0 }],
    ],
    ['an image whose download failed', { conditions: [failed] }, [{ failed: true, message: failed.message }]],
    [
      'an image that is tried again',
      { conditions: [failed], progress: { what: reference, doneBytes: 0 } },
      [{ failed: false, message: '' }],
    ],
    ...(['ModelPullFailed', 'ModelHashMismatch', 'DiskFull'] as const).map((reason): [string, Partial<BoardSlot['status']>, object[]] => [
      `a model whose download failed with ${reason}`,
      { conditions: [{ ...failed, reason }] },
      [{ model: 'a.gguf', failed: true, message: failed.message }],
    ]),
    ['nothing', {}, []],
  ])('list %s', (_what, status, expected) => {
    const listed = expected.map((each) => ({ slot: NAME, model: null, ...each }));
    expect(viewPulls(withStatus(status), []).pulls).toMatchObject(listed);
    expect(viewPulls(withStatus(status), []).pulls).toHaveLength(listed.length);
  });
});

describe('the JSON of the management API', () => {
  test('has all fields of a slot in order', () => {
    const board = withStatus({
      endpoint: 'http://127.0.0.1:1',
      memoryBytes: 5,
      replicas: { present: 2, ready: 1 },
      progress: { what: 'a.gguf', doneBytes: 1 },
    });
    const stored = { name: NAME, document: { model: { default: 'a.gguf' }, nodeSelector: { aB: 'c' } }, resourceVersion: '7' };
    expect(JSON.stringify(viewSlot(NAME, stored, board))).toMatchInlineSnapshot(
      `"{"name":"primary","spec":{"model":{"default":"a.gguf"},"node_selector":{"aB":"c"}},"status":{"state":"ready","conditions":[{"type":"Ready","status":"True","reason":"ProbePassed","message":"It answers","last_transition_at":"2023-11-14T22:13:20.000Z","observed_generation":4}],"observed_generation":1,"provider":"gguf","backend":"cpu","model":"a.gguf","wanted_model":"a.gguf","capabilities":["chat","completion","embedding","rerank"],"endpoint":"http://127.0.0.1:1","memory_bytes":5,"restarts":0,"replicas":{"present":2,"ready":1},"since":null,"progress":{"what":"a.gguf","done_bytes":1,"total_bytes":null,"bytes_per_second":null,"seconds_left":null},"rollout":null,"problems":[{"key":"lifecycle.idle_timeout","message":"Write a duration","file":"primary.toml","line":3,"column":null}]},"generation":5,"resource_version":"7"}"`,
    );
  });

  test('has null for fields of a slot that are not known', () => {
    expect(JSON.stringify(viewSlot(NAME, undefined, withStatus({ conditions: [] })))).toMatchInlineSnapshot(
      `"{"name":"primary","spec":null,"status":{"state":"ready","conditions":[],"observed_generation":1,"provider":"gguf","backend":"cpu","model":"a.gguf","wanted_model":"a.gguf","capabilities":["chat","completion","embedding","rerank"],"endpoint":null,"memory_bytes":null,"restarts":0,"replicas":null,"since":null,"progress":null,"rollout":null,"problems":[{"key":"lifecycle.idle_timeout","message":"Write a duration","file":"primary.toml","line":3,"column":null}]},"generation":4,"resource_version":null}"`,
    );
  });

  test('has all fields of a slot that no pass has accepted', () => {
    const board = { ...boardView(1, []), at: 1_700_000_000_000, refused: new Map([[NAME, [PROBLEM]]]) };
    const refused = { name: NAME, document: { model: { default: 'a.gguf' }, lifecycle: { idleTimeout: 'x' } }, resourceVersion: '7' };
    const stored = { name: NAME, document: { model: { default: 'a.gguf' } }, resourceVersion: '7' };
    expect(JSON.stringify(viewSlot(NAME, refused, board))).toMatchInlineSnapshot(
      `"{"name":"primary","spec":{"model":{"default":"a.gguf"},"lifecycle":{"idle_timeout":"x"}},"status":{"state":"offline","conditions":[{"type":"Ready","status":"False","reason":"SpecInvalid","message":"primary.toml:3: lifecycle.idle_timeout: Write a duration","last_transition_at":"2023-11-14T22:13:20.000Z","observed_generation":0},{"type":"UpToDate","status":"False","reason":"SpecInvalid","message":"primary.toml:3: lifecycle.idle_timeout: Write a duration","last_transition_at":"2023-11-14T22:13:20.000Z","observed_generation":0},{"type":"Stalled","status":"True","reason":"SpecInvalid","message":"primary.toml:3: lifecycle.idle_timeout: Write a duration","last_transition_at":"2023-11-14T22:13:20.000Z","observed_generation":0},{"type":"SpecValid","status":"False","reason":"SpecInvalid","message":"primary.toml:3: lifecycle.idle_timeout: Write a duration","last_transition_at":"2023-11-14T22:13:20.000Z","observed_generation":0}],"observed_generation":0,"provider":null,"backend":null,"model":"a.gguf","wanted_model":null,"capabilities":[],"endpoint":null,"memory_bytes":null,"restarts":0,"replicas":null,"since":"2023-11-14T22:13:20.000Z","progress":null,"rollout":null,"problems":[{"key":"lifecycle.idle_timeout","message":"Write a duration","file":"primary.toml","line":3,"column":null}]},"generation":0,"resource_version":"7"}"`,
    );
    expect(JSON.stringify(viewSlot(NAME, stored, boardView(1, [])))).toMatchInlineSnapshot(
      `"{"name":"primary","spec":{"model":{"default":"a.gguf"}},"status":{"state":"offline","conditions":[{"type":"Ready","status":"Unknown","reason":"NotYetSeen","message":"The slot has not been reconciled yet","last_transition_at":"1970-01-01T00:00:00.001Z","observed_generation":0},{"type":"UpToDate","status":"Unknown","reason":"NotYetSeen","message":"The slot has not been reconciled yet","last_transition_at":"1970-01-01T00:00:00.001Z","observed_generation":0}],"observed_generation":-1,"provider":null,"backend":null,"model":"a.gguf","wanted_model":null,"capabilities":[],"endpoint":null,"memory_bytes":null,"restarts":0,"replicas":null,"since":"1970-01-01T00:00:00.001Z","progress":null,"rollout":null,"problems":[]},"generation":1,"resource_version":"7"}"`,
    );
    expect(JSON.stringify(viewStatus(board, () => ({ inFlight: 0, parked: 0 })))).toMatchInlineSnapshot(
      `"[{"name":"primary","state":"offline","model":null,"provider":null,"backend":null,"ready":false,"reason":"SpecInvalid","message":"primary.toml:3: lifecycle.idle_timeout: Write a duration","in_flight":0,"parked":0,"progress":null,"totals":null}]"`,
    );
  });

  test('counts an edit that no pass has read as the next generation, and one with a mistake too', () => {
    const generationOf = (document: NonNullable<StoredSlot['document']>, problems: readonly SpecProblem[]): number | undefined => {
      const slot = { ...boardSlot({ name: 'primary', model: 'a.gguf' }), generation: 4, problems };
      const board = { ...boardView(1, []), slots: new Map([[NAME, slot]]) };
      return viewSlot(NAME, { name: NAME, document, resourceVersion: '7' }, board)?.generation;
    };
    const same = { model: { default: 'a.gguf' }, backend: 'cpu' };
    expect(generationOf(same, [])).toBe(4);
    expect(generationOf({ ...same, model: { default: 'b.gguf' } }, [])).toBe(5);
    expect(generationOf({ ...same, model: {} }, [])).toBe(5);
    expect(generationOf({ ...same, model: {} }, [PROBLEM])).toBe(4);
    expect(generationOf(same, [PROBLEM])).toBe(5);
  });

  test('shows a slot whose mistake was corrected as not yet seen, and the mistake until then', () => {
    const board = { ...boardView(1, []), refused: new Map([[NAME, [PROBLEM]]]) };
    const conditionsOf = (document: NonNullable<StoredSlot['document']>): string =>
      JSON.stringify(viewSlot(NAME, { name: NAME, document, resourceVersion: '7' }, board)?.status);
    expect(conditionsOf({ model: {} })).toContain('"type":"Stalled","status":"True","reason":"SpecInvalid"');
    const corrected = conditionsOf({ model: { default: 'a.gguf' } });
    expect(corrected).toContain('"type":"UpToDate","status":"Unknown","reason":"NotYetSeen"');
    expect(corrected).not.toContain('SpecInvalid');
  });

  test('has all fields of a status line, a timeline entry and a download', () => {
    const board = withStatus({ progress: { what: 'a.gguf', doneBytes: 1, totalBytes: 2 } });
    expect(
      JSON.stringify(
        viewStatus(board, () => ({ inFlight: 2, parked: 7, totals: { outputTokens: 40, firstTokens: 2, firstTokenSeconds: 0.5 } })),
      ),
    ).toMatchInlineSnapshot(
      `"[{"name":"primary","state":"ready","model":"a.gguf","provider":"gguf","backend":"cpu","ready":true,"reason":"ProbePassed","message":"It answers","in_flight":2,"parked":7,"progress":null,"totals":{"output_tokens":40,"first_tokens":2,"first_token_seconds":0.5}}]"`,
    );
    const entry = { seq: 1, at: 1_700_000_000_000, slot: NAME, kind: 'action', message: 'Started' } as const;
    expect(JSON.stringify(viewTimelineEntry(entry))).toMatchInlineSnapshot(
      `"{"seq":1,"at":"2023-11-14T22:13:20.000Z","slot":"primary","kind":"action","message":"Started","cause":null,"from":null,"to":null}"`,
    );
    expect(JSON.stringify(viewTimelineEntry({ ...entry, cause: 'c', from: 'warming', to: 'ready' }))).toMatchInlineSnapshot(
      `"{"seq":1,"at":"2023-11-14T22:13:20.000Z","slot":"primary","kind":"action","message":"Started","cause":"c","from":"warming","to":"ready"}"`,
    );
    expect(JSON.stringify(answerOf(Progress, progressFacts({ what: 'a', doneBytes: 1 })))).toMatchInlineSnapshot(
      `"{"what":"a","done_bytes":1,"total_bytes":null,"bytes_per_second":null,"seconds_left":null}"`,
    );
  });
});
