/** A gateway and servers for suites about fallback, and the check that nothing of a request is left. */
import { afterEach, beforeEach, expect } from '@jest/globals';
import type { Admission } from '../../../src/reconciler/board.ts';
import { publish, slotName, type SlotSketch } from './board-fixture.ts';
import { CHAT, chatBody, post, type Reply } from './client.ts';
import { startUpstream, type FakeUpstream, type UpstreamOptions } from './fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './gateway-fixture.ts';

type More = Partial<SlotSketch>;

export const open = (name: string, { port }: FakeUpstream, more: More = {}): SlotSketch => ({
  name,
  targets: [{ workload: `w-${name}`, port }],
  ...more,
});
export const closed = (name: string, admission: Admission, more: More = {}): SlotSketch => ({ name, admission, ...more });
export const to = (...names: readonly string[]): More => ({ fallback: { to: [...names] } });
export const when = (...conditions: readonly string[]): More => ({ fallback: { to: ['b', 'c'], when: [...conditions] } });
export const way = ({ status, headers }: Reply) => [status, headers['x-svc-slot'], headers['x-svc-fallback']];

/** Starts a gateway before each test of the file. */
export function useFallbackGateway() {
  const upstreams: FakeUpstream[] = [];
  let gateway: GatewayFixture | undefined;
  const running = (): GatewayFixture => {
    if (gateway === undefined) throw new Error('Call it in a test');
    return gateway;
  };
  beforeEach(async () => {
    gateway = await startGateway();
  });
  afterEach(async () => {
    const { faults, traffic, gateway: own, close } = running();
    expect(faults).toEqual([]);
    await until(() => own.load().requests === 0);
    for (const name of ['primary', 'b', 'c', 'd']) expect(traffic.holds.inFlight(slotName(name))).toBe(0);
    await close();
    await Promise.all(upstreams.splice(0).map((upstream) => upstream.kill()));
    await until(() => own.load().connections === 0);
    expect(own.load()).toEqual({ requests: 0, bufferedBytes: 0, spooledBytes: 0, connections: 0 });
  });
  return {
    running,
    upstreams,
    async server(answer?: UpstreamOptions['answer'], more: UpstreamOptions = {}): Promise<FakeUpstream> {
      const upstream = await startUpstream(answer === undefined ? more : { ...more, answer });
      upstreams.push(upstream);
      return upstream;
    },
    show: (...slots: readonly SlotSketch[]): void => void publish(running().board, ...slots),
    ask: (more: object = {}): Promise<Reply> => post(running().port, CHAT, chatBody(more)),
    waiting: (name = 'primary'): number => running().traffic.parking.waiting(slotName(name)),
    /** How many requests each server has seen. */
    counts: (): readonly number[] => upstreams.map(({ seen }) => seen.length),
  };
}
