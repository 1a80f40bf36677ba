/** Versions of the messages of a chat. */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { addVersion, showVersion } from '../../dashboard/src/decide/branches.ts';
import { chatBody, EMPTY_ANSWER, readMessages, type ChatMessage } from '../../dashboard/src/decide/chat.ts';

type Messages = readonly ChatMessage[];
/** Adds a conversation such as `q1 a1` after so many messages, or shows a version of the message at an index. */
type Step = { readonly add: string; readonly keep?: number } | { readonly show: number; readonly at: number };

const messagesOf = (text: string): Messages =>
  text.split(' ').map((content) => ({ ...EMPTY_ANSWER, role: content.startsWith('q') ? 'user' : 'assistant', content }));

const take = (messages: Messages, step: Step): Messages =>
  'add' in step ? addVersion(messages, messagesOf(step.add), step.keep) : showVersion(messages, step.at, step.show);

/** Each visible message, with its version where it has several: `q2#2/2`. */
const seen = (messages: Messages): string =>
  messages.map(({ content, versions }) => content + (versions ? `#${versions.shown + 1}/${versions.others.length + 1}` : '')).join(' ');

const TALK: Step = { add: 'q1 a1 q2 a2' };

test.each<readonly [string, readonly Step[], string]>([
  ['a question and its answer', [{ add: 'q1 a1' }], 'q1 a1'],
  ['a second question', [{ add: 'q1 a1' }, { add: 'q2 a2' }], 'q1 a1 q2 a2'],
  ['a repeated answer', [TALK, { add: 'a3', keep: 3 }], 'q1 a1 q2 a3#2/2'],
  ['an answer repeated twice', [TALK, { add: 'a3', keep: 3 }, { add: 'a4', keep: 3 }], 'q1 a1 q2 a4#3/3'],
  ['the first of three answers', [TALK, { add: 'a3', keep: 3 }, { add: 'a4', keep: 3 }, { show: 0, at: 3 }], 'q1 a1 q2 a2#1/3'],
  [
    'an answer repeated where the first is shown comes last',
    [TALK, { add: 'a3', keep: 3 }, { show: 0, at: 3 }, { add: 'a4', keep: 3 }],
    'q1 a1 q2 a4#3/3',
  ],
  ['an edited first question', [TALK, { add: 'q3 a3', keep: 0 }], 'q3#2/2 a3'],
  ['its former version, with what followed it', [TALK, { add: 'q3 a3', keep: 0 }, { show: 0, at: 0 }], 'q1#1/2 a1 q2 a2'],
  [
    'an answer that was repeated in another branch',
    [TALK, { add: 'a3', keep: 3 }, { add: 'q3 a4', keep: 0 }, { show: 0, at: 0 }],
    'q1#1/2 a1 q2 a3#2/2',
  ],
  [
    'both versions of a question keep the versions of their answers',
    [
      TALK,
      { add: 'a3', keep: 1 },
      { add: 'q3 a4', keep: 0 },
      { add: 'a5', keep: 1 },
      { show: 0, at: 1 },
      { show: 0, at: 0 },
      { show: 0, at: 1 },
    ],
    'q1#1/2 a1#1/2 q2 a2',
  ],
  ['a question after a former version', [TALK, { add: 'a3', keep: 1 }, { show: 0, at: 1 }, { add: 'q5 a5' }], 'q1 a1#1/2 q2 a2 q5 a5'],
  ['a version that does not exist', [TALK, { add: 'a3', keep: 3 }, { show: 2, at: 3 }], 'q1 a1 q2 a3#2/2'],
  ['a message that does not exist', [TALK, { show: 0, at: 9 }], 'q1 a1 q2 a2'],
])('%s', (_what, steps, expected) => {
  const messages = steps.reduce(take, []);
  expect(seen(messages)).toBe(expected);
  // A reload changes nothing, and the model gets the visible branch only.
  expect(readMessages(JSON.stringify(messages))).toEqual(messages);
  const sent = Object(chatBody('m', messages))['messages'].map(({ content }: { content: string }) => content);
  expect(sent).toEqual(seen(messages).replaceAll(/#\S+/g, '').split(' '));
});

test('while a repeated answer is asked for, the former one is not sent', () => {
  expect(seen(addVersion(messagesOf('q1 a1 q2 a2'), [], 3))).toBe('q1 a1 q2');
});

test('nothing that was said is lost, whatever is edited, repeated and shown', () => {
  const step = fc.record({ keep: fc.nat(6), isEdit: fc.boolean(), shown: fc.nat(3) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      let messages = messagesOf('q1 a1 q2 a2');
      for (const [index, { keep, isEdit, shown }] of steps.entries())
        messages = isEdit ? addVersion(messages, messagesOf(`q-${index}`), keep) : showVersion(messages, keep, shown);
      const all = JSON.stringify(messages);
      for (const [index, { isEdit }] of steps.entries()) if (isEdit) expect(all).toContain(`"q-${index}"`);
      for (const content of ['q1', 'a1', 'q2', 'a2']) expect(all.split(`"${content}"`)).toHaveLength(2);
    }),
  );
});

test.each([{}, { shown: 'x', others: [] }, { shown: 0, others: [7] }, { shown: 0, others: [[{}]] }, 7])(
  'a stored message whose versions are %j is left out',
  (versions) => {
    const [message] = messagesOf('q1');
    expect(readMessages(JSON.stringify([{ ...message, versions }]))).toEqual([]);
  },
);
