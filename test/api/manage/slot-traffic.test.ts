import { expect, test } from '@jest/globals';
import { createSlotTraffic } from '../../../src/api/manage/slot-traffic.ts';
import { SlotName, WorkloadId } from '../../../src/spec/names.ts';
import { startWorld } from './world.ts';

test('createSlotTraffic() counts a workload that left the board until its last request ends', async () => {
  const world = await startWorld();
  const name = SlotName.parse('primary');
  const [old, fresh] = [WorkloadId.parse('old'), WorkloadId.parse('new')];
  const leases = new Map([[old, { inFlight: 2 }]]);
  const traffic = createSlotTraffic({
    board: world.board,
    leases: { read: () => leases },
    parking: { read: () => new Map([[name, { waiting: 5 }]]) },
  });
  world.save(name, '[model]\ndefault = "a"\n');
  await world.settled();
  const view = world.board.current();
  const slot = view.slots.get(name);
  if (slot === undefined) throw new Error('No slot');
  const publish = (workload: WorkloadId) => {
    const targets = [{ workload, endpoint: { host: '127.0.0.1', port: 1 } }];
    world.board.publish({ ...view, slots: new Map([[name, { ...slot, targets }]]) });
  };
  publish(old);
  leases.set(fresh, { inFlight: 1 });
  publish(fresh);
  expect(traffic(name)).toEqual({ inFlight: 3, parked: 5 });
  leases.set(old, { inFlight: 0 });
  publish(fresh);
  leases.set(old, { inFlight: 9 });
  expect(traffic(name).inFlight).toBe(1);
  expect(traffic(SlotName.parse('embed'))).toEqual({ inFlight: 0, parked: 0 });
  await world.close();
});
