import { describe, expect, test } from '@jest/globals';
import { chatBody, EMPTY_ANSWER } from '../../dashboard/src/decide/chat.ts';
import { isDefault, NO_SETTINGS, readSaved, samplingOf, writeSaved } from '../../dashboard/src/decide/chat-settings.ts';
import { conversationText } from '../../dashboard/src/decide/conversation-text.ts';
import { addVote, readScores } from '../../dashboard/src/decide/votes.ts';

describe('settings of the chat', () => {
  test('are fields of the request, and what is empty or no number is left to the model', () => {
    expect(samplingOf(NO_SETTINGS)).toEqual({});
    expect(samplingOf({ ...NO_SETTINGS, temperature: '0', topP: '0.9', maxTokens: '40', seed: '-1' })).toEqual({
      temperature: 0,
      top_p: 0.9,
      max_tokens: 40,
      seed: -1,
    });
    expect(samplingOf({ ...NO_SETTINGS, temperature: 'hot', seed: ' ' })).toEqual({});
  });

  test('put the system prompt first', () => {
    const question = [{ ...EMPTY_ANSWER, role: 'user', content: 'Who?' }] as const;
    expect(chatBody('m', question, [], { ...NO_SETTINGS, system: 'Be brief', seed: '7' })).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief' },
        { role: 'user', content: 'Who?' },
      ],
      seed: 7,
    });
    expect(chatBody('m', question)).toEqual({ model: 'm', messages: [{ role: 'user', content: 'Who?' }] });
  });

  test('are kept as a text, and whatever that text is, settings are read from it', () => {
    const saved = { current: { ...NO_SETTINGS, seed: '7' }, presets: new Map([['Poet', { ...NO_SETTINGS, system: 'Rhyme' }]]) };
    expect(readSaved(writeSaved(saved))).toEqual(saved);
    for (const text of ['', '{', 'null', '[]', '{"current":7,"presets":[]}', '{"current":{"seed":7}}'])
      expect(readSaved(text)).toEqual({ current: NO_SETTINGS, presets: new Map() });
    expect(isDefault(NO_SETTINGS)).toBe(true);
    expect(isDefault(saved.current)).toBe(false);
  });
});

test('a conversation as Markdown has who said what, and why an answer ended early', () => {
  const text = conversationText(
    [
      { ...EMPTY_ANSWER, role: 'user', content: 'Weather?', images: ['data:,'] },
      { ...EMPTY_ANSWER, reasoning: 'Ask\nthe tool', tools: [{ id: '1', name: 'weather', args: '{"city":"Oslo"}' }], ended: 'tool_calls' },
      { ...EMPTY_ANSWER, role: 'tool', callId: '1', content: '4 degrees' },
      { ...EMPTY_ANSWER, content: 'It is 4', ended: 'length' },
    ],
    { ...NO_SETTINGS, system: 'Be brief' },
  );
  expect(text).toBe(
    [
      '## System',
      'Be brief',
      '## User',
      'Weather?',
      '(1 image)',
      '## Assistant',
      '> Ask\n> the tool',
      '`weather`',
      '```json\n{"city":"Oslo"}\n```',
      '## Tool result',
      '4 degrees',
      '## Assistant',
      'It is 4',
      '(length)\n',
    ].join('\n\n'),
  );
});

describe('votes', () => {
  test('count comparisons and wins of each model, the best share first', () => {
    const once = addVote([], ['a', 'b'], 'b');
    expect(once).toEqual([
      { model: 'b', wins: 1, judged: 1 },
      { model: 'a', wins: 0, judged: 1 },
    ]);
    expect(addVote(addVote(once, ['a', 'c'], 'a'), ['a', 'b', 'c'], 'b')).toEqual([
      { model: 'b', wins: 2, judged: 2 },
      { model: 'a', wins: 1, judged: 3 },
      { model: 'c', wins: 0, judged: 2 },
    ]);
  });

  test('count one comparison for two slots with the same model', () =>
    expect(addVote([], ['a', 'a'], 'a')).toEqual([{ model: 'a', wins: 1, judged: 1 }]));

  test('are read from any text', () => {
    expect(readScores('[{"model":"a","wins":1,"judged":2},{"model":"b"},7]')).toEqual([{ model: 'a', wins: 1, judged: 2 }]);
    for (const text of ['', '{}', 'null']) expect(readScores(text)).toEqual([]);
  });
});
