import { describe, expect, test } from '@jest/globals';
import { isOver, refuseReview, refuseUse, VALID_MS, type PlanFacts, type Use } from '../../../../src/api/mcp/decide/judge-plan.ts';
import { SlotName } from '../../../../src/schema/words/names.ts';

const PRIMARY = SlotName.parse('primary');
const EMBED = SlotName.parse('embed');
const AGENT = { key: 'token:1', identity: 'agent', scope: 'admin' } as const;
const PERSON = { key: 'user:anna', identity: 'anna', scope: 'admin' } as const;
const SINCE = { ms: 1000, wallMs: 1_800_000_000_000 };
const later = (ms: number, wallMs = ms) => ({ ms: SINCE.ms + ms, wallMs: SINCE.wallMs + wallMs });
const PLAN: PlanFacts = {
  id: '1a2b3c4d',
  state: 'ready',
  planner: AGENT.key,
  since: SINCE,
  versions: new Map([
    [PRIMARY, '1'],
    [EMBED, undefined],
  ]),
};
const USE: Use = { isGenuine: true, caller: AGENT, now: later(1), versions: new Map([[PRIMARY, '1']]) };
const HOUR = 3_600_000;

describe('the token of a plan', () => {
  const USABLE: readonly (readonly [what: string, plan: Partial<PlanFacts>, use: Partial<Use>])[] = [
    ['at once', {}, {}],
    ['in its last moment', {}, { now: later(VALID_MS) }],
    [
      'after another slot was edited',
      {},
      {
        versions: new Map([
          [PRIMARY, '1'],
          [SlotName.parse('stt'), '7'],
        ]),
      },
    ],
    ['after the clock was set back an hour', {}, { now: later(1, -HOUR) }],
  ];

  test.each(USABLE)('can be used %s', (_what, plan, use) => {
    expect(refuseUse({ ...PLAN, ...plan }, { ...USE, ...use })).toBeUndefined();
  });

  const REFUSED: readonly (readonly [what: string, plan: Partial<PlanFacts>, use: Partial<Use>, message: RegExp])[] = [
    ['another plan', {}, { isGenuine: false }, /not that of this plan/],
    ['another caller', {}, { caller: PERSON }, /Another caller/],
    ['a caller who is not known', {}, { caller: undefined }, /Another caller/],
    ['a scope that was lowered since', {}, { caller: { ...AGENT, scope: 'all' } }, /no longer change slots/],
    ['a second use', { state: 'used' }, {}, /used already/],
    ['a rejected plan', { state: 'rejected' }, {}, /rejected/],
    ['more than five minutes', {}, { now: later(VALID_MS + 1) }, /five minutes/],
    ['five minutes while the clock was set back', {}, { now: later(VALID_MS + 1, -HOUR) }, /five minutes/],
    ['a clock that was set forward, or a machine that slept', {}, { now: later(1, HOUR) }, /five minutes/],
    ['a monotonic clock that runs backwards', {}, { now: later(-1) }, /five minutes/],
    ['an edit in between', {}, { versions: new Map([[PRIMARY, '2']]) }, /Changed since the plan was made: "primary"/],
    ['a deletion in between', {}, { versions: new Map() }, /"primary"/],
    [
      'a slot that was created in between',
      {},
      {
        versions: new Map([
          [PRIMARY, '1'],
          [EMBED, '1'],
        ]),
      },
      /"embed"/,
    ],
    ['no approval', { state: 'waiting' }, {}, /svcctl mcp approve 1a2b3c4d/],
    ['no approval, after an edit', { state: 'waiting' }, { versions: new Map() }, /Changed/],
  ];

  test.each(REFUSED)('is refused after %s', (_what, plan, use, message) => {
    expect(refuseUse({ ...PLAN, ...plan }, { ...USE, ...use })).toMatch(message);
  });

  test('is refused without a plan', () => {
    expect(refuseUse(undefined, USE)).toMatch(/no such plan/);
  });
});

describe('the review of a plan', () => {
  const WAITING: PlanFacts = { ...PLAN, state: 'waiting' };
  const CASES: readonly (readonly [
    what: string,
    plan: PlanFacts | undefined,
    caller: Use['caller'],
    approve: RegExp | undefined,
    reject: RegExp | undefined,
  ])[] = [
    ['another caller', WAITING, PERSON, undefined, undefined],
    ['the caller who made it', WAITING, AGENT, /cannot approve it/, undefined],
    ['anyone, without authentication', { ...WAITING, planner: 'anyone' }, { ...PERSON, key: 'anyone' }, undefined, undefined],
    ['a second approval', PLAN, PERSON, /needs no approval/, undefined],
    ['a plan that was applied', { ...PLAN, state: 'used' }, PERSON, /applied already/, /applied already/],
    ['a plan that was rejected', { ...PLAN, state: 'rejected' }, PERSON, /rejected already/, /rejected already/],
    ['no plan', undefined, PERSON, /no such plan/, /no such plan/],
    ['a plan that is over', { ...WAITING, since: { ms: SINCE.ms - VALID_MS, wallMs: 0 } }, PERSON, /is over/, /is over/],
  ];

  test.each(CASES)('%s', (_what, plan, caller, approve, reject) => {
    const judge = (approves: boolean) => refuseReview(plan, { caller, now: later(1), approves }) ?? '';
    expect(judge(true)).toMatch(approve ?? /^$/);
    expect(judge(false)).toMatch(reject ?? /^$/);
  });
});

test('a plan is over when either clock says so', () => {
  expect([later(0), later(VALID_MS, 0), later(0, VALID_MS), later(0, -HOUR)].map((now) => isOver(SINCE, now))).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect([later(VALID_MS + 1, 0), later(0, VALID_MS + 1), later(-1, 0)].map((now) => isOver(SINCE, now))).toEqual([true, true, true]);
});
