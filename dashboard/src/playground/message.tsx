import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ChatMessage } from '../decide/chat.ts';
import { Markdown } from './markdown.tsx';
import { P } from '../texts-playground.ts';
import { Waiting } from './slot-choice.tsx';

export interface MessageProps {
  readonly message: ChatMessage;
  /** The response is still being streamed. */
  readonly isOpen: boolean;
  readonly slot: string;
  /** Sends the message again with another text, after what was said before it. Undefined where it cannot be. */
  readonly onEdit?: ((text: string) => void) | undefined;
  /** Asks for another answer. Undefined where there can be none. */
  readonly onRegenerate?: (() => void) | undefined;
}

export function Message({ message, isOpen, slot, onEdit, onRegenerate }: MessageProps): JSX.Element {
  const { role, content, reasoning, tools, images, ended, speed } = message;
  const [isEdited, setEdited] = useState(false);
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
      {isEdited && onEdit !== undefined ? (
        <EditForm text={content} onSend={onEdit} onClose={() => setEdited(false)} />
      ) : role === 'assistant' ? (
        <Markdown text={content} />
      ) : (
        <p class="plain">{content}</p>
      )}
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
      {!isOpen && !isEdited && (
        <div class="buttons message-actions">
          {content !== '' && <CopyButton text={content} />}
          {onEdit !== undefined && (
            <button type="button" class="quiet" onClick={() => setEdited(true)}>
              {P.edit}
            </button>
          )}
          {onRegenerate !== undefined && (
            <button type="button" class="quiet" onClick={onRegenerate}>
              {P.regenerate}
            </button>
          )}
        </div>
      )}
    </article>
  );
}

function CopyButton({ text }: { readonly text: string }): JSX.Element | null {
  const [told, setTold] = useState<string>(P.copy);
  // Browsers offer the clipboard only over HTTPS and on localhost.
  if (!window.isSecureContext || !('clipboard' in navigator)) return null;
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setTold(P.copied),
      () => setTold(P.copyDenied),
    );
  };
  return (
    <button type="button" class="quiet" onClick={copy} onBlur={() => setTold(P.copy)}>
      {told}
    </button>
  );
}

interface EditFormProps {
  readonly text: string;
  readonly onSend: (text: string) => void;
  readonly onClose: () => void;
}

function EditForm({ text: before, onSend, onClose }: EditFormProps): JSX.Element {
  const [text, setText] = useState(before);
  const send = (event: Event): void => {
    event.preventDefault();
    onClose();
    onSend(text);
  };
  return (
    <form onSubmit={send}>
      <textarea aria-label={P.edit} rows={4} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="buttons">
        <button type="submit" class="main" disabled={text.trim() === ''}>
          {P.sendAgain}
        </button>
        <button type="button" onClick={onClose}>
          {P.cancel}
        </button>
      </div>
    </form>
  );
}
