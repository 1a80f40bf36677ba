import { afterAll } from '@jest/globals';
import { describeWithMachine, shareMachine } from '../support/require/require-machine.ts';
import { describeDocuments } from './doc-steps.ts';
import { describeHost } from './host-steps.ts';
import { describeHttps } from './https-steps.ts';
import { describeInstaller } from './install-suite.ts';

describeWithMachine('A machine', () => {
  const { clean, down } = shareMachine('bookworm');
  afterAll(down, 120_000);
  // The installer comes first: it compares the machine with a new one.
  describeInstaller('bookworm', clean);
  describeHost('bookworm', clean);
  describeHttps('bookworm', clean);
  describeDocuments('bookworm', clean);
});
