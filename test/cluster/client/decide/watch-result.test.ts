import { describe, expect, test } from '@jest/globals';
import { causeAfter, watchResult } from '../../../../src/cluster/client/decide/choose-list.ts';
import type { WatchOutcome } from '../../../../src/cluster/client/read-watch.ts';
import type { Reason } from '../../../../src/schema/status/reasons.ts';

const refused = (reason: Reason): WatchOutcome => ({ kind: 'refused', failure: { kind: 'retry', reason, message: '' } });

describe('watchResult() and causeAfter()', () => {
  test.each([
    [{ kind: 'ended', orderly: true, livedMs: 1, bookmarked: true }, 'ended', 'due'],
    [{ kind: 'ended', orderly: false, livedMs: 1, bookmarked: true }, 'broken', 'due'],
    [{ kind: 'lost', orderly: false, livedMs: 1 }, 'lost', 'lost'],
    [{ kind: 'relist' }, 'relist', 'due'],
    [refused('Expired'), 'expired', 'expired'],
    [refused('ApiUnreachable'), 'refused', 'due'],
  ] as const satisfies readonly (readonly [WatchOutcome, string, string])[])(
    '%j is "%s", and a list after it "%s"',
    (outcome, result, cause) => {
      expect(watchResult(outcome)).toBe(result);
      expect(causeAfter(watchResult(outcome))).toBe(cause);
    },
  );
});
