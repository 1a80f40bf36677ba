/** What happens to a controller at the worst time: while an action is under way. */
import type { Scene } from './simulate-scene.ts';
import type { Call, Watcher } from './journal.ts';

/** How long after the beginning of an action at most. */
const WITHIN_MS = 400;

/** Kills the controller in its next action, or in the one that is under way. `elect`: chooses another leader, where there are several controllers. */
export function crashInAction(scene: Scene, index: number, elect: () => void): void {
  const { world, referee } = scene;
  happenInAction(scene, index, () => {
    const led = world.leader() === index;
    referee.follow(world.crash(index));
    if (led) elect();
  });
}

/** Does this in the next action of the controller, or in the one that is under way. */
export function happenInAction({ world, random, faults }: Scene, index: number, deed: () => void): void {
  const life = world.lives()[index];
  if (life === undefined) return;
  const { journal } = life;
  const happen = (): void => {
    // It may have ended by then, or the faults may be over.
    if (faults.chaos && world.lives()[index] === life) deed();
  };
  if ([...journal.open].some(isAction)) return happen();
  const watcher: Watcher = {
    called(call) {
      if (!isAction(call)) return;
      journal.watchers.delete(watcher);
      world.clock.at(world.clock.now() + random.int(0, WITHIN_MS), happen);
    },
  };
  journal.watchers.add(watcher);
}

function isAction({ name }: Call): boolean {
  return name === 'apply' || name === 'stop' || name === 'pullImage' || name === 'pullModel';
}
