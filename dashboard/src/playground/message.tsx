import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ChatMessage, Versions } from '../decide/chat.ts';
import { Markdown } from './markdown.tsx';
import { Button } from '../parts/button.tsx';
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
  /** Shows another version. Undefined while an answer is streamed. */
  readonly onVersion?: ((version: number) => void) | undefined;
}

export function Message({ message, isOpen, slot, onEdit, ...actions }: MessageProps): JSX.Element {
  const { role, content, reasoning, tools, images, ended, speed } = message;
  const [edited, setEdited] = useState<string>();
  // The form closes when a branch with another message is shown.
  const isEdited = edited === content;
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
        <EditForm text={content} onSend={onEdit} onClose={() => setEdited(undefined)} />
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
        <MessageActions message={message} {...actions} onEdit={onEdit === undefined ? undefined : () => setEdited(content)} />
      )}
    </article>
  );
}

interface MessageActionsProps extends Pick<MessageProps, 'message' | 'onRegenerate' | 'onVersion'> {
  readonly onEdit: (() => void) | undefined;
}

function MessageActions({ message: { content, versions }, onEdit, onRegenerate, onVersion }: MessageActionsProps): JSX.Element {
  return (
    <div class="buttons message-actions">
      {versions !== undefined && onVersion !== undefined && <VersionChoice {...versions} onVersion={onVersion} />}
      {content !== '' && <CopyButton text={content} />}
      {onEdit !== undefined && <Button label={P.edit} look="quiet" onClick={onEdit} />}
      {onRegenerate !== undefined && <Button label={P.regenerate} look="quiet" onClick={onRegenerate} />}
    </div>
  );
}

function VersionChoice({ shown, others, onVersion }: Versions & { readonly onVersion: (version: number) => void }): JSX.Element {
  const count = others.length + 1;
  return (
    <div class="versions">
      <Button label="‹" name={P.previousVersion} look="quiet" disabled={shown === 0} onClick={() => onVersion(shown - 1)} />
      <span role="status" aria-label={P.versionOf(shown + 1, count)}>{`${shown + 1}/${count}`}</span>
      <Button label="›" name={P.nextVersion} look="quiet" disabled={shown + 1 === count} onClick={() => onVersion(shown + 1)} />
    </div>
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
        <Button label={P.sendAgain} look="main" disabled={text.trim() === ''} />
        <Button label={P.cancel} onClick={onClose} />
      </div>
    </form>
  );
}
