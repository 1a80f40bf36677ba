/** A conversation as text. Pure. */
import type { ChatMessage } from './chat.ts';
import type { ChatSettings } from './chat-settings.ts';

/** Markdown, with a heading for each message. */
export function conversationText(messages: readonly ChatMessage[], settings: ChatSettings): string {
  const parts = messages.map(({ role, content, reasoning, tools, images, ended }) => {
    const thoughts = reasoning === '' ? [] : [quoted(reasoning)];
    const calls = tools.map(({ name, args }) => `\`${name}\`\n\n\`\`\`json\n${args}\n\`\`\``);
    const pictures = images.length === 0 ? [] : [`(${images.length === 1 ? '1 image' : `${images.length} images`})`];
    const why = ended === undefined || ended === 'stop' || ended === 'tool_calls' ? [] : [`(${ended})`];
    return [`## ${HEADINGS[role]}`, ...thoughts, content, ...pictures, ...calls, ...why].filter((part) => part !== '').join('\n\n');
  });
  return `${[...(settings.system.trim() === '' ? [] : [`## System\n\n${settings.system}`]), ...parts].join('\n\n')}\n`;
}

const HEADINGS: Readonly<Record<ChatMessage['role'], string>> = { user: 'User', assistant: 'Assistant', tool: 'Tool result' };

const quoted = (text: string): string =>
  text
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n');
