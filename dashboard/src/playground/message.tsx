import type { JSX } from 'preact';
import type { ChatMessage } from '../decide/chat.ts';
import { Markdown } from './markdown.tsx';
import { P } from '../texts-playground.ts';
import { Waiting } from './slot-choice.tsx';

interface MessageProps {
  readonly message: ChatMessage;
  /** The response is still being streamed. */
  readonly isOpen: boolean;
  readonly slot: string;
}

export function Message({ message: { role, content, reasoning, tools, images, ended, speed }, isOpen, slot }: MessageProps): JSX.Element {
  const author = role === 'user' ? P.you : role === 'tool' ? P.toolResult : slot;
  const isEmpty = content === '' && reasoning === '' && tools.length === 0;
  return (
    <article class={`message ${role}`}>
      <h2>{author}</h2>
      {images.length > 0 && (
        <p class="pictures">
          {images.map((url, index) => (
            <img key={index} src={url} alt={`${P.image} ${index + 1}`} />
          ))}
        </p>
      )}
      {isOpen && isEmpty && <Waiting slot={slot} />}
      {reasoning !== '' && (
        <details open={content === ''}>
          <summary>{P.reasoning}</summary>
          <p class="reasoning">{reasoning}</p>
        </details>
      )}
      {role === 'assistant' ? <Markdown text={content} /> : <p class="plain">{content}</p>}
      {tools.map(({ name, args }, index) => (
        <div key={index} class="tool-call">
          <p>
            <span class="tag">{P.toolCall}</span> <strong>{name}</strong>
          </p>
          <pre tabIndex={0}>{args}</pre>
        </div>
      ))}
      {speed !== undefined && <p class="why">{P.speedOf(speed)}</p>}
      {ended !== undefined && ended !== 'stop' && ended !== 'tool_calls' && (
        <p class="why">{ended === 'length' ? P.lengthReached : ended}</p>
      )}
    </article>
  );
}
