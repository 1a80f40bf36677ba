/** What is planned for a slot whose new models are judged. "old" has served, and "new" is what the newest text wants. */
import { describe, expect, test } from '@jest/globals';
import type { Checks, RolloutState, Verdict } from '../../../../src/evaluation/decide/rollout-state.ts';
import type { Action } from '../../../../src/reconciler/decide/facts/actions.ts';
import { statusFacts } from '../../../../src/reconciler/decide/outcome/published-status.ts';
import { inspect } from '../../../../src/reconciler/decide/inspect.ts';
import { parseSlot } from '../../../../src/schema/slot/slot-spec.ts';
import { failed, factsOf, NOW, OTHER_REVISION, planOf, PRIMARY, type Scene, type SceneWorkload } from '../plan-fixture.ts';

const CHECKS: Checks = { digest: 'one', cases: [{ request: { messages: [] }, expect: { contains: 'a' } }] };
const REPORT = { cases: 1, passed: 1, misses: [], firstTokenP95: undefined, tokensPerSecond: undefined };
const MISS = { case: 1, required: true, question: 'Who?', expectation: 'contains "a"', answer: 'b' };
const parsed = parseSlot(PRIMARY, { model: { default: 'z.gguf' } });
if (!parsed.ok) throw new Error('The slot of the test is not valid');
const ACCEPTED = { spec: parsed.spec, document: {}, revision: OTHER_REVISION };
const NEW_REVISION = factsOf({}).template.revision;

const OLD: SceneWorkload = { id: 'old', revision: 'other' };
const NEW: SceneWorkload = { id: 'new', port: 18_081, name: 'svc-slot-primary--new' };

function sceneOf(workloads: readonly SceneWorkload[], state: Partial<RolloutState> = {}, more: Scene = {}): Scene {
  const rollout = { checks: CHECKS, accepted: ACCEPTED, isOnTrial: true, ...state };
  const slot = { ...more.slot, rollout: { check: 'a.jsonl', ...more.slot?.rollout } };
  return { ...more, workloads, rollout, slot };
}
const verdict = (outcome: Verdict['outcome'], revision: string = NEW_REVISION): Verdict => ({
  outcome,
  revision,
  checks: 'one',
  because: 'Case 1 did not pass',
  misses: [MISS],
});

/** Actions other than probes, what serves, and how requests are admitted. */
function outcome(scene: Scene) {
  const { made, actions, admission } = planOf(scene);
  const { desired, observed } = factsOf(scene);
  expect(inspect(made, desired, observed, NOW)).toEqual([]);
  const decision = made.decisions.get(PRIMARY);
  return [actions.filter((key) => !key.startsWith('probe')).join(' '), decision?.serving ?? 'none', admission];
}
const settledBy = (scene: Scene): Extract<Action, { name: 'settle' }>['args']['settlement'] | undefined =>
  planOf(scene).made.actions.flatMap((action) => (action.name === 'settle' ? action.args.settlement : []))[0];
const conditionOf = (scene: Scene, type: string) =>
  planOf(scene)
    .made.decisions.get(PRIMARY)
    ?.conditions.find((each) => each.type === type);

const COMPARES: Scene = { slot: { rollout: { compare: true } } };
const DEAD: Scene = { failures: [failed(2000, 'crash'), failed(1000, 'crash')] };

describe('a slot whose new models are judged', () => {
  test.each<[string, Scene, readonly string[]]>([
    ['starts the new one beside the old one', sceneOf([OLD]), ['apply:primary', 'old', 'open']],
    ['lets the new one answer the cases while the old one serves', sceneOf([OLD, NEW]), ['evaluate:primary', 'old', 'open']],
    ['lets it answer them while requests wait, where the old one has left', sceneOf([NEW]), ['evaluate:primary', 'none', 'park']],
    ['asks nothing before the new one has passed its probe', sceneOf([OLD, { ...NEW, probe: 'loading' }]), ['', 'old', 'open']],
    ['asks nothing as a follower', sceneOf([OLD, NEW], {}, { leads: false }), ['', 'old', 'open']],
    ['lets the old one answer first, where both are compared', sceneOf([OLD], {}, COMPARES), ['evaluate:primary', 'old', 'open']],
    [
      'starts the new one once the old one has answered these cases',
      sceneOf([OLD], { accepted: { ...ACCEPTED, baseline: { checks: 'one', report: REPORT } } }, COMPARES),
      ['apply:primary', 'old', 'open'],
    ],
    [
      'asks the old one again where it has answered other cases',
      sceneOf([OLD], { accepted: { ...ACCEPTED, baseline: { checks: 'other', report: REPORT } } }, COMPARES),
      ['evaluate:primary', 'old', 'open'],
    ],
    [
      'accepts what has passed, and ends the old one',
      sceneOf([OLD, NEW], { verdict: verdict('passed') }),
      ['stop:old settle:primary', 'new', 'open'],
    ],
    [
      'judges another revision than the one that has passed',
      sceneOf([OLD, NEW], { verdict: verdict('passed', 'fedcba987654') }),
      ['evaluate:primary', 'old', 'open'],
    ],
    ['keeps one that is held without requests', sceneOf([OLD, NEW], { verdict: verdict('held') }), ['', 'old', 'open']],
    ['reverts what is held once the old one is gone', sceneOf([NEW], { verdict: verdict('held') }), ['settle:primary', 'none', 'park']],
    [
      'accepts the first one whatever it answers',
      sceneOf([NEW], { accepted: undefined, isOnTrial: false }),
      ['settle:primary', 'new', 'open'],
    ],
    ['accepts a restarted one of the same model', sceneOf([NEW], { isOnTrial: false }), ['settle:primary', 'new', 'open']],
    [
      'has nothing left to do once it is accepted',
      sceneOf([NEW], { isOnTrial: false, accepted: { ...ACCEPTED, revision: NEW_REVISION } }),
      ['', 'new', 'open'],
    ],
    [
      'ends a server of a text that was rolled back, and gives it nothing, though nothing else answers',
      sceneOf([OLD], {
        isOnTrial: false,
        accepted: { ...ACCEPTED, revision: NEW_REVISION },
        rolledBack: { ...ACCEPTED, verdict: verdict('rolled_back', OTHER_REVISION) },
      }),
      ['stop:old', 'none', 'park'],
    ],
    [
      'reverts a text whose cases cannot be read, where nothing serves',
      sceneOf([NEW], { checks: undefined }),
      ['settle:primary', 'none', 'park'],
    ],
    ['waits with it while the old one serves', sceneOf([OLD, NEW], { checks: undefined }), ['', 'old', 'open']],
    ['reverts after two failed starts where nothing serves', sceneOf([], {}, DEAD), ['settle:primary', 'none', 'park']],
    ['tries again while the old one serves', sceneOf([OLD], {}, DEAD), ['', 'old', 'open']],
    ['reverts a model that is missing where nothing serves', sceneOf([], {}, { model: 'missing' }), ['settle:primary', 'none', 'park']],
    ['waits for a missing one while the old one serves', sceneOf([OLD], {}, { model: 'missing' }), ['', 'old', 'open']],
    ['judges nothing while the slot is off', sceneOf([NEW], {}, { slot: { enabled: false } }), ['stop:new', 'none', 'slot.disabled']],
  ])('%s', (_what, scene, expected) => {
    expect(outcome(scene)).toEqual(expected);
  });

  test('reverts a slot that is stalled also while the old one serves', () => {
    const failures = Array.from({ length: 5 }, (_, index) => failed(1000 * (index + 1), 'crash'));
    expect(outcome(sceneOf([OLD], {}, { failures }))).toEqual(['settle:primary', 'old', 'open']);
  });

  test('passes the rules on, with what an old model has answered', () => {
    const more: Scene = {
      slot: {
        rollout: { pass: 0.5, compare: true, tolerance: 0.1, limits: { firstTokenP95: '2s', tokensPerSecond: 7 }, onFailure: 'hold' },
      },
    };
    const scene = sceneOf([OLD, NEW], { accepted: { ...ACCEPTED, baseline: { checks: 'one', report: REPORT } } }, more);
    const [action] = planOf(scene).made.actions.filter(({ name }) => name === 'evaluate');
    expect(action?.args).toMatchObject({
      workload: 'new',
      as: 'candidate',
      generation: 3,
      revision: NEW_REVISION,
      onFailure: 'held',
      rules: { pass: 0.5, limits: { firstTokenP95: 2000, tokensPerSecond: 7 }, compare: { report: REPORT, tolerance: 0.1 } },
    });
  });

  test('a revert names what happened, with the misses of a model that was held', () => {
    expect(settledBy(sceneOf([NEW], { verdict: verdict('held') }))).toEqual({
      kind: 'verdict',
      generation: 3,
      verdict: { ...verdict('rolled_back') },
    });
    expect(settledBy(sceneOf([], {}, DEAD))).toMatchObject({
      verdict: { outcome: 'rolled_back', because: 'It failed: Crashed', misses: [] },
    });
  });

  test.each<[string, Scene, string, string, string]>([
    ['is judged', sceneOf([NEW]), 'Ready', 'False', 'Evaluating'],
    ['is judged beside the old one', sceneOf([OLD, NEW]), 'Ready', 'True', 'PreviousServes'],
    ['is held', sceneOf([OLD, NEW], { verdict: verdict('held') }), 'Stalled', 'True', 'EvaluationFailed'],
    ['is held, and nothing is under way', sceneOf([OLD, NEW], { verdict: verdict('held') }), 'Reconciling', 'False', 'AtRest'],
    [
      'was rolled back',
      sceneOf([NEW], { isOnTrial: false, rolledBack: { ...ACCEPTED, verdict: verdict('rolled_back', 'x') } }),
      'Stalled',
      'True',
      'RolledBack',
    ],
    [
      'was rolled back, and the slot answers',
      sceneOf([NEW], { isOnTrial: false, rolledBack: { ...ACCEPTED, verdict: verdict('rolled_back', 'x') } }),
      'Ready',
      'True',
      'ProbePassed',
    ],
  ])('a model that %s says so', (_what, scene, type, status, reason) => {
    expect(conditionOf(scene, type)).toMatchObject({ status, reason });
  });
});

/** "old" was accepted before, and what the slot wants now serves since a minute. */
function watchedScene(
  workloads: readonly SceneWorkload[],
  more: Scene = {},
  watch: string | undefined = '10m',
  since = NOW - 60_000,
): Scene {
  const { checks: _none, ...state } = { ...ACCEPTED, revision: NEW_REVISION, checks: undefined };
  const slot = { rollout: watch === '' ? {} : { watch } };
  const rollout = { checks: undefined, accepted: state, isOnTrial: false, watched: { previous: ACCEPTED, since } };
  return { ...more, workloads, rollout, slot };
}

describe('a model that is watched', () => {
  const KEEPS = ['', 'new', 'open'];
  test.each<[string, Scene, readonly string[]]>([
    ['stays while nothing fails', watchedScene([NEW]), KEEPS],
    ['stays with a few failed requests', watchedScene([{ ...NEW, requests: { ended: 8, failed: 4 } }]), KEEPS],
    ['stays with a small share of failed requests', watchedScene([{ ...NEW, requests: { ended: 100, failed: 10 } }]), KEEPS],
    [
      'stays though the one before fails requests',
      watchedScene([{ ...OLD, requests: { ended: 9, failed: 9 } }, NEW]),
      ['stop:old', 'new', 'open'],
    ],
    ['stays though somebody removed its server', watchedScene([NEW], { failures: [failed(1000, 'vanish')] }), KEEPS],
    ['stays though it crashed before it served', watchedScene([NEW], { failures: [failed(70_000, 'crash')] }), KEEPS],
    [
      'is rolled back after a crash, and not started again',
      watchedScene([], { failures: [failed(1000, 'crash')] }),
      ['settle:primary', 'none', 'park'],
    ],
    [
      'is rolled back where it crashed and was restarted',
      watchedScene([NEW], { failures: [failed(1000, 'crash')] }),
      ['settle:primary', 'new', 'open'],
    ],
    [
      'is rolled back when it computes nonsense',
      watchedScene([{ ...NEW, probe: 'nonsense' }]),
      ['stop:new settle:primary', 'none', 'park'],
    ],
    [
      'is rolled back for its failed requests',
      watchedScene([{ ...NEW, requests: { ended: 40, failed: 5 } }]),
      ['settle:primary', 'new', 'open'],
    ],
    ['stays for a follower', watchedScene([], { failures: [failed(1000, 'crash')], leads: false }), ['apply:primary', 'none', 'park']],
    ['has proven itself when the time is over', watchedScene([NEW], {}, '1m'), ['settle:primary', 'new', 'open']],
    ['has proven itself when "watch" is removed', watchedScene([NEW], {}, ''), ['settle:primary', 'new', 'open']],
    [
      'is started again after a crash when the time is over',
      watchedScene([], { failures: [failed(1, 'crash')] }, '1m'),
      ['settle:primary', 'none', 'park'],
    ],
  ])('%s', (_what, scene, expected) => {
    expect(outcome(scene)).toEqual(expected);
  });

  test('is watched from its first answer in this process on', () => {
    const scene = watchedScene([NEW]);
    const { rollout } = scene;
    if (rollout?.watched === undefined) throw new Error('Nothing is watched');
    const recalled = { ...scene, rollout: { ...rollout, watched: { ...rollout.watched, since: undefined } } };
    expect(settledBy(recalled)).toEqual({ kind: 'served', generation: 3, revision: NEW_REVISION, at: NOW });
    expect(planOf(scene).made.wakeAt).toBeLessThanOrEqual(NOW + 540_000);
  });

  test('says why it was rolled back', () => {
    const because = (scene: Scene) => settledBy(scene);
    expect(because(watchedScene([{ ...NEW, requests: { ended: 40, failed: 5 } }]))).toMatchObject({
      verdict: {
        outcome: 'rolled_back',
        revision: NEW_REVISION,
        because: 'It was watched for 10m ("watch"): Its server failed 5 of 40 requests',
      },
    });
    expect(because(watchedScene([NEW], {}, '1m'))).toEqual({ kind: 'proven', generation: 3 });
  });
});

describe('inspect()', () => {
  const wrong = (scene: Scene, plan: Scene): string => {
    const { desired, observed } = factsOf(scene);
    return inspect(planOf(plan).made, desired, observed, NOW)
      .map(({ message }) => message)
      .join('; ');
  };

  test('rejects requests to a model that has failed', () => {
    const held = sceneOf([NEW], { verdict: verdict('held') });
    expect(wrong(held, sceneOf([NEW], { verdict: verdict('passed') }))).toContain('to "new", which has failed its cases');
    const back = sceneOf([NEW], { isOnTrial: false, rolledBack: { ...ACCEPTED, verdict: verdict('rolled_back') } });
    expect(wrong(back, sceneOf([NEW], { isOnTrial: false }))).toContain('to "new", which has failed its cases');
  });

  test('rejects questions to a server that is not on trial, does not answer or does not exist', () => {
    const asking = sceneOf([NEW]);
    expect(wrong(sceneOf([NEW], { isOnTrial: false }), asking)).toContain('whose model is not on trial');
    expect(wrong(sceneOf([{ ...NEW, probe: 'loading' }]), asking)).toContain('which has not passed a probe');
    expect(wrong(sceneOf([]), asking)).toContain('which does not run for it');
  });
});

test('a controller that has not started the old server says which model it serves, not which is on trial', () => {
  const scene = sceneOf([OLD, NEW]);
  const { made } = planOf(scene);
  const { desired, observed } = factsOf(scene);
  const slot = desired.slots.get(PRIMARY);
  const decision = made.decisions.get(PRIMARY);
  if (slot === undefined || decision === undefined) throw new Error('There is no slot');
  expect([decision.serving, statusFacts(slot, decision, observed).model]).toEqual(['old', 'z.gguf']);
});
