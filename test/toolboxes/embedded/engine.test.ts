import { describe } from '@jest/globals';
import { embeddedEngine } from '../../providers/gguf/running-server.ts';
import { serverContract } from '../../providers/gguf/server-contract.ts';

describe('The embedded engine, started by the provider,', () => {
  serverContract(embeddedEngine());
});
