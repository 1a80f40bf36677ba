/** What the load generator prints is read as it is, failures included. */
import { expect, test } from '@jest/globals';
import { parseWrk } from '../../bench/decide/parse-wrk.ts';

const printed = (half: string, requests: string, more = ''): string => `Running 2s test @ http://127.0.0.1:19999/v1/chat/completions
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.94ms    1.50ms  26.51ms   97.01%
    Req/Sec    17.56k     2.19k   20.02k    85.00%
  Latency Distribution
     50%    ${half}
     75%    2.01ms
     90%    2.41ms
     99%    7.91ms
  ${requests}, 8.06MB read
${more}Requests/sec:  17452.70
Transfer/sec:      4.02MB
`;

test.each<[string, string, ReturnType<typeof parseWrk>]>([
  ['microseconds', printed('1.72us', '34943 requests in 2.00s'), { requests: 34_943, failures: 0, seconds: 2, medianUs: 1.72 }],
  ['milliseconds', printed('1.72ms', '34943 requests in 2.50s'), { requests: 34_943, failures: 0, seconds: 2.5, medianUs: 1720 }],
  ['minutes', printed('1.50s', '5 requests in 1.50m'), { requests: 5, failures: 0, seconds: 90, medianUs: 1_500_000 }],
  ['nothing', printed('0.00us', '0 requests in 1.00s'), { requests: 0, failures: 0, seconds: 1, medianUs: 0 }],
  [
    'failures',
    printed(
      '1.00ms',
      '10 requests in 1.00s',
      '  Socket errors: connect 1, read 20, write 300, timeout 4000\n  Non-2xx or 3xx responses: 50000\n',
    ),
    { requests: 10, failures: 54_321, seconds: 1, medianUs: 1000 },
  ],
  [
    'refused answers alone',
    printed('1.00ms', '10 requests in 1.00s', '  Non-2xx or 3xx responses: 10\n'),
    { requests: 10, failures: 10, seconds: 1, medianUs: 1000 },
  ],
])('a report with %s', (_name, text, report) => {
  expect(parseWrk(text)).toEqual(report);
});

test('another text is refused', () => {
  expect(() => parseWrk('unable to connect to 127.0.0.1:1 Connection refused')).toThrow('unable to connect');
});
