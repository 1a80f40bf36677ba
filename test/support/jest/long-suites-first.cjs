/** Starts the suites first that take longest, so that none of them runs alone at the end. A run of CI knows no times of earlier ones. */
const { createHash } = require('node:crypto');
const { default: Sequencer } = require('@jest/test-sequencer');

/** Those that take more than 60 seconds in `.ci/run`, which draws from them, in the order of their times, as measured in November 2026. */
const LONG = [
  'browser/dashboard',
  'e2e/gitops',
  'simulation/even-seeds',
  'simulation/odd-seeds',
  'gateway/limits/shared-limits',
  'e2e/odd-files',
  'simulation/program-mutants',
  'e2e/image-memory',
  'e2e/on-demand',
  'gateway/memory',
  'simulation/mutants',
  'e2e/rollout',
  'e2e/history',
  'proxy/caddy',
  'host/source/git-source',
  'e2e/pulled-models',
  'e2e/model-keys',
  'simulation/learned-loads',
  'providers/engines/contract',
  'e2e/two-hosts',
  'simulation/memory-seeds',
  'house/runnable-docs',
  'e2e/load-ahead',
  'cli/serve-banner',
  'simulation/paused-passes',
  'browser/first-answers',
  'turbo/workers/service',
  'cli/local-verbs',
  'cluster/workloads/late-controllers',
  'cli/cluster-verbs',
  'host/source/git-repository',
  'models/download/fetch-archive',
  'reconciler/recorded-machines',
  'e2e/hung-server',
  'e2e/remote-slots',
  'e2e/usage-sums',
  'gateway/speech',
  'cli/service-verbs',
  'host/process/process-recovery',
  'e2e/traces',
  'cli/cluster-doctor',
  'api/server/one-answer',
  'api/manage/unsafe-edits',
  'turbo/workers/leased-limits',
  'e2e/caller-limits',
  'browser/playground',
  'browser/many-slots',
  'browser/first-visit',
  'browser/firefox',
  'browser/new-slot',
  'browser/sign-in',
  'models/download/faulty-server',
  'toolboxes/speech/listener',
  'cli/backup',
  'cli/serve-refusals',
  'cli/eval-verb',
  'gateway/limits/valkey-counts',
];

const PATHS = LONG.map((name) => `/test/${name}.test.ts`);

class LongSuitesFirst extends Sequencer {
  /**
   * The path alone decides, so that suites that failed are in the same shard when they run again. Each shard contains the long suites, from which `.ci/run` draws, and those of the tree itself.
   */
  shard(tests, { shardIndex, shardCount }) {
    const isInAll = (path) => path.includes('/test/house/') || PATHS.some((name) => path.endsWith(name));
    const shardOf = (path) =>
      createHash('sha1')
        .update(path.slice(path.lastIndexOf('/test/')))
        .digest()
        .readUInt32BE() % shardCount;
    return tests.filter(({ path }) => isInAll(path) || shardOf(path) === shardIndex - 1);
  }

  sort(tests) {
    const rankOf = ({ path }) => {
      const rank = PATHS.findIndex((name) => path.endsWith(name));
      return rank === -1 ? PATHS.length : rank;
    };
    return super.sort(tests).toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

module.exports = LongSuitesFirst;
module.exports.LONG = LONG;
