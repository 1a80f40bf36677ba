import { describe, expect, test } from '@jest/globals';
import type { Cli } from '../../src/cli/cli.ts';
import type { SlotAnswer } from '../../src/cli/connect/api-answers.ts';
import type { Client } from '../../src/cli/connect/client.ts';
import { READY, waitForSlot } from '../../src/cli/connect/wait-for-slot.ts';
import { createTerminal } from '../../src/cli/output/terminal.ts';

const unused = async (): Promise<never> => Promise.reject(new Error('Not used'));
const cli: Cli = {
  terminal: createTerminal({ stdout: process.stdout, stderr: process.stderr, env: {} }),
  env: {},
  connect: unused,
  readInput: unused,
  now: () => 0,
};

function slot(conditions: Readonly<Record<string, string>>): SlotAnswer {
  const list = Object.entries(conditions).map(([type, status]) => ({ type, status, reason: 'Reason', message: `Message of ${type}` }));
  return { name: 'img', generation: 2, status: { state: 'ready', conditions: list, observed_generation: 2, restarts: 0 } };
}

async function wait(answer: SlotAnswer, generation?: number): Promise<string> {
  const client: Client = {
    pollMs: 1,
    request: unused,
    stream: unused,
    find: async (_path, schema) => schema.parse(answer),
  };
  return waitForSlot(cli, client, { name: 'img', goal: READY, deadline: 0, generation }).then(
    () => 'ready',
    (error: unknown) => String(error),
  );
}

const KEEPS_OLD_MODEL = { Ready: 'True', Reconciling: 'False', Stalled: 'True' };

describe('waitForSlot() with the goal Ready', () => {
  test('resolves if the slot is ready', async () => {
    expect(await wait(slot({ Ready: 'True', Reconciling: 'False', Stalled: 'False' }), 2)).toBe('ready');
  });

  test('fails after an edit if the slot serves its old model because the new one cannot be loaded', async () => {
    expect(await wait(slot(KEEPS_OLD_MODEL), 2)).toBe('CliFailure: Slot "img" is stalled: Message of Stalled');
  });

  test('resolves without an edit, even if the slot serves its old model', async () => {
    expect(await wait(slot(KEEPS_OLD_MODEL))).toBe('ready');
  });

  test('times out while the edit has not been observed', async () => {
    expect(await wait(slot({ Ready: 'True' }), 3)).toMatch(/^CliFailure: Timed out: img: ready/);
  });
});
