/** A controller that was killed may have created a container without starting it. Nothing else will. */
import { expect, test } from '@jest/globals';
import { planOf, PRIMARY, type Scene, type SceneWorkload } from './plan-fixture.ts';

const CREATED: SceneWorkload = { id: 'w1', phase: 'created', probe: 'none' };
const outcome = (scene: Scene) => {
  const { made, actions } = planOf(scene);
  return [actions.join(' '), made.decisions.get(PRIMARY)?.state];
};

test.each<[string, SceneWorkload, string, string]>([
  ['one that this controller has started is starting', { ...CREATED, started: true }, '', 'starting'],
  ['one of an earlier controller is removed', CREATED, 'stop:w1', 'unloading'],
  [
    'one that waits for something is starting',
    { ...CREATED, fact: { waitingReason: { kind: 'other', reason: 'RemoteUnreachable', message: 'It is away' } } },
    '',
    'starting',
  ],
  ['one whose image is being fetched is pulling', { ...CREATED, fact: { fetching: 'image:v1' } }, '', 'pulling'],
])('%s', (_what, workload, actions, state) => {
  expect(outcome({ workloads: [workload] })).toEqual([actions, state]);
});
