/** Starts the suites first that take longest, so that none of them runs alone at the end. A run of CI knows no times of earlier ones. */
const { default: Sequencer } = require('@jest/test-sequencer');

/** Those that take more than 40 seconds on two cores, in the order of their times, as measured in November 2026. */
const LONG = [
  'browser/dashboard',
  'e2e/gitops',
  'simulation/even-seeds',
  'simulation/odd-seeds',
  'gateway/limits/shared-limits',
  'e2e/image-memory',
  'e2e/odd-files',
  'e2e/on-demand',
  'simulation/mutants',
  'simulation/program-mutants',
  'proxy/caddy',
  'e2e/history',
  'e2e/model-keys',
  'simulation/learned-loads',
  'providers/engines/contract',
  'e2e/two-hosts',
  'gateway/memory',
  'simulation/memory-seeds',
  'house/runnable-docs',
  'cli/serve-banner',
  'simulation/paused-passes',
  'browser/first-answers',
  'e2e/hung-server',
  'e2e/remote-slots',
  'e2e/usage-sums',
  'host/source/git-source',
  'e2e/rollout',
  'cli/cluster-doctor',
  'api/server/one-answer',
  'e2e/load-ahead',
  'turbo/workers/service',
  'cli/cluster-verbs',
  'turbo/workers/leased-limits',
  'models/download/faulty-server',
  'e2e/caller-limits',
].map((name) => `/test/${name}.test.ts`);

module.exports = class LongSuitesFirst extends Sequencer {
  sort(tests) {
    const rankOf = ({ path }) => {
      const rank = LONG.findIndex((name) => path.endsWith(name));
      return rank === -1 ? LONG.length : rank;
    };
    return super.sort(tests).toSorted((one, other) => rankOf(one) - rankOf(other));
  }
};
