import { describe, expect, test } from '@jest/globals';
import { PARK, publish, slotName } from './support/board-fixture.ts';
import { CHAT, chatBody, errorOf, post } from './support/client.ts';
import { startGateway, until } from './support/gateway-fixture.ts';

const PRIMARY = slotName('primary');

describe('a provider that throws in infer()', () => {
  test('fails the request that was parked, and not the publication of the board', async () => {
    const infer = (): never => {
      throw new TypeError('It exploded');
    };
    const gateway = await startGateway({ provider: { infer } });
    try {
      publish(gateway.board, { name: 'primary', admission: PARK });
      const reply = post(gateway.port, CHAT, chatBody());
      await until(() => gateway.traffic.ofSlot(PRIMARY).parked === 1);
      expect(() => publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: 9 }] })).not.toThrow();
      expect(errorOf((await reply).text)).toMatchObject({ code: 'server.internal', message: expect.stringContaining('It exploded') });
      expect(gateway.traffic.ofSlot(PRIMARY)).toEqual({ inFlight: 0, parked: 0 });
    } finally {
      await gateway.close();
    }
  });
});
