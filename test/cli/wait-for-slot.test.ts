import { describe, expect, test } from '@jest/globals';
import type { Cli } from '../../src/cli/verb.ts';
import { isAnswer } from '../../src/cli/connect/answer-shape.ts';
import type { SlotAnswer } from '../../src/cli/connect/api-answers.ts';
import type { Client } from '../../src/cli/connect/client.ts';
import { READY, UP_TO_DATE, waitForSlot, type Goal, type WaitOptions } from '../../src/cli/connect/wait-for-slot.ts';
import { createTerminal } from '../../src/cli/output/terminal.ts';

const unused = async (): Promise<never> => Promise.reject(new Error('Not used'));
const cli: Cli = {
  terminal: createTerminal({ stdout: process.stdout, stderr: process.stderr, env: {} }),
  env: {},
  connect: unused,
  readInput: unused,
  now: () => 0,
};

interface Scene {
  /** Each as `True`, or as `False:Reason`. */
  readonly conditions: Readonly<Record<string, string>>;
  readonly state?: string;
  readonly model?: string;
  readonly generation?: number;
  readonly observed?: number;
}

function slot({ conditions, state = 'ready', model = 'a', generation = 2, observed = generation }: Scene): SlotAnswer {
  const list = Object.entries(conditions).map(([type, text]) => {
    const [status = '', reason = 'Reason'] = text.split(':');
    return { type, status, reason, message: `Message of ${type}` };
  });
  return { name: 'img', generation, status: { state, conditions: list, observed_generation: observed, restarts: 0, model } };
}

async function wait(scene: Scene, goal: Goal, options: Partial<WaitOptions> = {}): Promise<string> {
  const client: Client = {
    pollMs: 1,
    request: unused,
    stream: unused,
    infer: unused,
    find: async (_path, name) => {
      const found: unknown = slot(scene);
      return isAnswer(name, found) ? found : undefined;
    },
  };
  return waitForSlot(cli, client, { name: 'img', goal, deadline: 0, ...options }).then(
    () => 'reached',
    (error: unknown) => String(error),
  );
}

const ANSWERS = { Ready: 'True', UpToDate: 'True', Reconciling: 'False', Stalled: 'False' };
const KEEPS_OLD_MODEL = { Ready: 'True', UpToDate: 'False:ModelMissing', Reconciling: 'False', Stalled: 'True' };
const SWAPS = { Ready: 'True', UpToDate: 'False:PreviousServes', Reconciling: 'True', Stalled: 'False' };
const RESTS = { Ready: 'False:NotAskedFor', UpToDate: 'True', Reconciling: 'False', Stalled: 'False' };
const LACKS_MODEL = { Ready: 'False:NotAskedFor', UpToDate: 'False:ModelMissing', Reconciling: 'False', Stalled: 'False' };
const DISABLED = { Ready: 'False:Disabled', UpToDate: 'True', Reconciling: 'False', Stalled: 'False' };

const STATE_READY: Goal = { kind: 'state', state: 'ready' };
const TIMED_OUT = /^CliFailure: Timed out: img: /;
const STALLED = 'CliFailure: Slot "img" is stalled: Message of Stalled';

describe('waitForSlot() with the goals Ready, UpToDate and the state ready', () => {
  for (const goal of [READY, UP_TO_DATE, STATE_READY]) {
    const name = goal.kind === 'state' ? goal.state : goal.type;

    test(`${name}: resolves if the slot answers as its newest spec says`, async () => {
      expect(await wait({ conditions: ANSWERS }, goal)).toBe('reached');
      expect(await wait({ conditions: ANSWERS }, goal, { generation: 2, model: 'a' })).toBe('reached');
    });

    test(`${name}: fails if the slot is stalled, even while what ran before still answers`, async () => {
      expect(await wait({ conditions: KEEPS_OLD_MODEL }, goal)).toBe(STALLED);
      expect(await wait({ conditions: KEEPS_OLD_MODEL }, goal, { generation: 2 })).toBe(STALLED);
    });

    test(`${name}: waits while what ran before the edit still answers`, async () => {
      expect(await wait({ conditions: SWAPS }, goal)).toMatch(TIMED_OUT);
    });

    test(`${name}: waits while nobody has looked at what was written`, async () => {
      expect(await wait({ conditions: ANSWERS, generation: 3, observed: 2 }, goal)).toMatch(TIMED_OUT);
      expect(await wait({ conditions: ANSWERS }, goal, { generation: 3 })).toMatch(TIMED_OUT);
      expect(await wait({ conditions: KEEPS_OLD_MODEL, generation: 3, observed: 2 }, goal)).toMatch(TIMED_OUT);
    });

    test(`${name}: fails if another model answers than the one that was asked for`, async () => {
      expect(await wait({ conditions: ANSWERS, model: 'b' }, goal, { model: 'a' })).toContain('its model is "b", not "a"');
    });

    test(`${name}: fails for a slot that loads on demand and whose model cannot be loaded`, async () => {
      const answer = await wait({ conditions: LACKS_MODEL, state: 'offline' }, goal);
      expect(answer).toBe('CliFailure: Slot "img" cannot be loaded: Message of UpToDate');
    });

    test(`${name}: fails for a slot whose text was never valid`, async () => {
      const conditions = { Ready: 'False', UpToDate: 'False', Stalled: 'True', SpecValid: 'False' };
      expect(await wait({ conditions, state: 'offline', generation: 0 }, goal)).toBe(STALLED);
    });

    test(`${name}: takes the other conditions where a service does not have UpToDate`, async () => {
      expect(await wait({ conditions: { Ready: 'True', Reconciling: 'False', Stalled: 'False' } }, goal)).toBe('reached');
      expect(await wait({ conditions: { Ready: 'True', Reconciling: 'True', Stalled: 'False' } }, goal)).toMatch(TIMED_OUT);
    });
  }

  test('a slot that rests on purpose is up to date, and not ready', async () => {
    expect(await wait({ conditions: RESTS, state: 'offline' }, UP_TO_DATE)).toBe('reached');
    expect(await wait({ conditions: RESTS, state: 'offline' }, READY)).toMatch(TIMED_OUT);
  });

  test('a slot that is disabled is up to date, and does not become ready', async () => {
    expect(await wait({ conditions: DISABLED, state: 'offline' }, UP_TO_DATE)).toBe('reached');
    expect(await wait({ conditions: DISABLED, state: 'offline' }, READY)).toBe(
      'CliFailure: Slot "img" will not become ready: Message of Ready',
    );
  });
});

describe('waitForSlot() with another goal', () => {
  test('takes the condition literally', async () => {
    expect(await wait({ conditions: KEEPS_OLD_MODEL }, { kind: 'condition', type: 'Stalled', status: 'True' })).toBe('reached');
    expect(await wait({ conditions: KEEPS_OLD_MODEL }, { kind: 'condition', type: 'UpToDate', status: 'False' })).toBe('reached');
    expect(await wait({ conditions: ANSWERS }, { kind: 'condition', type: 'Unheard', status: 'True' })).toMatch(TIMED_OUT);
  });
});
