/** Lines of tables in Markdown. What was not measured is computed from what one leader and one follower cost. */
import type { Cost, ReplicaCost } from './scale-cost.ts';
import type { PassFigures } from './scale-passes.ts';

/** For which numbers of replicas there is a line. */
const REPLICAS: readonly number[] = [2, 10, 50];

const COST_HEAD = [
  '| Slots | Replicas | | Memory of the leader, of a follower | CPU at rest, of a core: leader, follower | Requests/s at rest, all | Received/s at rest, all | Start: requests, MB, CPU s of a replica | After a restart of the API server: requests, MB, all |',
  '| ----- | -------- | - | ----------------------------------- | ---------------------------------------- | ----------------------- | ----------------------- | --------------------------------------- | ---------------------------------------------------- |',
].join('\n');

const PASS_HEAD = [
  '| Slots | While | Request p50, p99, max | Turns of the event loop p50, p99, max | Passes, mean |',
  '| ----- | ----- | --------------------- | ------------------------- | ------------ |',
].join('\n');

export const costLines = Object.assign(
  (slots: number, measured: readonly ReplicaCost[]): readonly string[] => {
    const counts = [...new Set([...REPLICAS, measured.length])].toSorted((a, b) => a - b);
    return counts.map((replicas) => costLine(slots, replicas, measured));
  },
  { head: COST_HEAD },
);

export const passLines = Object.assign(
  (slots: number, figures: readonly PassFigures[]): readonly string[] => figures.map((each) => passLine(slots, each)),
  { head: PASS_HEAD },
);

function costLine(slots: number, replicas: number, measured: readonly ReplicaCost[]): string {
  const leaders = measured.filter(({ leads }) => leads);
  const followers = measured.filter(({ leads }) => !leads);
  const perLeader = (of: (cost: ReplicaCost) => number): number => mean(leaders.map(of));
  const perFollower = (of: (cost: ReplicaCost) => number): number => mean(followers.map(of));
  const all = (of: (cost: ReplicaCost) => number): number => perLeader(of) + (replicas - 1) * perFollower(of);
  const restart = (of: (cost: Cost) => number): number => all(({ restart: cost }) => (cost === undefined ? Number.NaN : of(cost)));
  const cells = [
    slots.toLocaleString('en'),
    String(replicas),
    replicas === measured.length ? 'measured' : 'computed',
    `${number(
      perLeader(({ memoryMb }) => memoryMb),
      0,
    )} MB, ${number(
      perFollower(({ memoryMb }) => memoryMb),
      0,
    )} MB`,
    `${number(
      perLeader(({ rest }) => rest.cpuSeconds * 100),
      1,
    )} %, ${number(
      perFollower(({ rest }) => rest.cpuSeconds * 100),
      1,
    )} %`,
    number(
      all(({ rest }) => rest.requests),
      2,
    ),
    `${number(
      all(({ rest }) => rest.megabytes * 1000),
      1,
    )} kB`,
    `${number(
      perFollower(({ start }) => start.requests),
      0,
    )}, ${number(
      perFollower(({ start }) => start.megabytes),
      1,
    )}, ${number(
      perFollower(({ start }) => start.cpuSeconds),
      1,
    )}`,
    `${number(
      restart(({ requests }) => requests),
      0,
    )}, ${number(
      restart(({ megabytes }) => megabytes),
      1,
    )}`,
  ];
  return `| ${cells.join(' | ')} |`;
}

function passLine(slots: number, { scene, latency, turns, passes, meanPass }: PassFigures): string {
  const three = ({ p50, p99, max }: PassFigures['latency']): string => `${[p50, p99, max].map((ms) => number(ms, 1)).join(', ')} ms`;
  return `| ${slots.toLocaleString('en')} | ${scene} | ${three(latency)} | ${three(turns)} | ${passes}, ${number(meanPass, 1)} ms |`;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const number = (value: number, digits: number): string => (Number.isNaN(value) ? '–' : value.toFixed(digits));
