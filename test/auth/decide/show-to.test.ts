/** What each scope sees of log lines, paths, arguments and variables: one rule, whatever the answer. */
import { describe, expect, test } from '@jest/globals';
import { hideValues, showTo, type Caller } from '../../../src/auth/decide/decide-access.ts';
import { hideHostText, quoteOutput } from '../../../src/schema/words/failure.ts';
import { SCOPES } from '../../../src/schema/words/access.ts';

const CALLERS: readonly (Caller | undefined)[] = [undefined, ...SCOPES.map((scope) => ({ key: 'caller', identity: 'ci', scope }))];
const LOGGED = `Failed 5 times; ${quoteOutput('last log line', 'error: "k" is MARK')}; edit the slot`;

/** Who sees the mark in this answer; "none" is a caller without a credential. */
const seenBy = (answer: unknown): readonly string[] =>
  CALLERS.filter((caller) => JSON.stringify(showTo(caller, answer)).includes('MARK')).map((caller) => caller?.scope ?? 'none');

describe('showTo()', () => {
  test.each<readonly [string, unknown, readonly string[]]>([
    ['a log line in a message', { conditions: [{ message: LOGGED }] }, ['admin', 'all']],
    ['output of a program', { message: quoteOutput('output', 'npm: MARK "x"') }, ['admin', 'all']],
    ['a path in a message', { reason: 'It runs in "/opt/MARK/bin/llama-server"' }, ['admin', 'all']],
    ['a path with spaces', { message: 'The disk of "/srv/my MARK/models" is full' }, ['admin', 'all']],
    ['a path as a field', { problems: [{ file: '/etc/svc/MARK/img.toml' }] }, ['admin', 'all']],
    ['a path with line and column', { message: '/etc/svc/MARK.toml:3:1: model.default: Write a string' }, ['admin', 'all']],
    ['mounts', { message: 'mounts ["/srv/MARK:/models:ro"] instead of []' }, ['admin', 'all']],
    ['an argument in a document', { slots: [{ spec: { model: { args: ['--api-key', 'MARK'] } } }] }, ['admin']],
    ['an argument with its flag', { spec: { model: { args: ['--hf-token=MARK'] } } }, ['admin']],
    ['a variable', { spec: { env: { HF_TOKEN: 'MARK' } } }, ['admin']],
    ['a variable of a pod', { spec: { pod: { server: { env: [{ name: 'A', value: 'MARK' }] } } } }, ['admin']],
    ['a command of a pod', { spec: { pod: { init_containers: [{ command: ['sh', '-c', 'MARK'] }] } } }, ['admin']],
    ['the name of a model', { spec: { model: { default: 'hf:owner/MARK:Q4_K_M' } } }, ['none', ...SCOPES]],
    ['an address', { url: 'https://huggingface.co/owner/MARK' }, ['none', ...SCOPES]],
  ])('%s', (_what, answer, scopes) => expect(seenBy(answer).toSorted()).toEqual(scopes.toSorted()));

  test('leaves everything else as it is', () => {
    const answer = { a: [1, null, true, 'x'], at: '2026-01-01T00:00:00.000Z', spec: null, env: { A: 'b' } };
    for (const caller of CALLERS) expect(showTo(caller, answer)).toEqual(answer);
  });
});

test.each([
  ['Ask "/v1/chat/completions", /api/slots or `/rerank`', undefined],
  ['12 tok/s, and/or 1 / 2, ~/.config/svc, owner/repo', undefined],
  ['http://127.0.0.1:8080/x, https://[::1]:8080/y', undefined],
  ['The device "/dev/kfd" and /proc/meminfo', undefined],
  ['Files of somebody in "/dev/shm/anna/llama-server" and /dev/shm/anna', 'Files of somebody in "(hidden)" and (hidden)'],
  ['"/api-data/x" is a directory', '"(hidden)" is a directory'],
  [LOGGED, 'Failed 5 times; last log line: "(hidden)"; edit the slot'],
])('hideHostText(%j)', (text, shown = text) => expect(hideHostText(text)).toBe(shown));

test.each([
  [
    { env: { TOKEN: 'a' }, model: { default: 'm' } },
    { env: { TOKEN: '(hidden)' }, model: { default: 'm' } },
  ],
  [
    {
      pod: {
        containers: [
          {
            name: 'c',
            env: [
              { name: 'A', value: 'b' },
              { name: 'B', value_from: { secret: 's' } },
            ],
          },
        ],
      },
    },
    {
      pod: {
        containers: [
          {
            name: 'c',
            env: [
              { name: 'A', value: '(hidden)' },
              { name: 'B', value_from: { secret: 's' } },
            ],
          },
        ],
      },
    },
  ],
  [
    { model: { args: ['-ngl', '99', '--api-key', 'a', '--hf-token=b', '--mlock', '-secret', '-1'] } },
    { model: { args: ['-ngl', '(hidden)', '--api-key', '(hidden)', '--hf-token=(hidden)', '--mlock', '(hidden)', '(hidden)'] } },
  ],
  [{ node_selector: { env: 'a' } }, { node_selector: { env: 'a' } }],
  [{ env: {} }, { env: {} }],
  [null, null],
])('hideValues(%j)', (document, shown) => expect(hideValues(document)).toEqual(shown));
