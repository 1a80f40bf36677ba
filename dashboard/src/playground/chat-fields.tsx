/** What a message may carry beside its text: images, and the tools that the model may call. */
import type { JSX } from 'preact';
import { parseJson } from '../decide/untrusted.ts';
import { P } from '../texts-playground.ts';

/** Undefined if the text is not a JSON array. */
export function readTools(text: string): readonly unknown[] | undefined {
  if (text.trim() === '') return [];
  const parsed = parseJson(text);
  return Array.isArray(parsed) ? parsed : undefined;
}

interface AttachmentsProps {
  readonly images: readonly string[];
  readonly onImages: (images: readonly string[]) => void;
}

export function Attachments({ images, onImages }: AttachmentsProps): JSX.Element {
  const add = async (files: FileList | null): Promise<void> =>
    onImages([...images, ...(await Promise.all([...(files ?? [])].map(readImage)))]);
  return (
    <div class="pictures">
      <label>
        {P.attach}
        <input type="file" accept="image/*" multiple onChange={({ currentTarget: { files } }) => void add(files)} />
      </label>
      {images.map((url, index) => (
        <button key={index} type="button" aria-label={`${P.removeImage} ${index + 1}`} onClick={() => onImages(images.toSpliced(index, 1))}>
          <img src={url} alt="" />
        </button>
      ))}
    </div>
  );
}

async function readImage(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(typeof reader.result === 'string' ? reader.result : ''));
    reader.addEventListener('error', () => reject(reader.error ?? new Error(file.name)));
    reader.readAsDataURL(file);
  });
}

interface ToolsFieldProps {
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly isWrong: boolean;
}

const TOOL_EXAMPLE =
  '[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]';

export function ToolsField({ text, onText, isWrong }: ToolsFieldProps): JSX.Element {
  return (
    <details>
      <summary>{P.tools}</summary>
      <p class="why">{P.toolsWhy}</p>
      <textarea
        class="mono"
        rows={4}
        aria-label={P.tools}
        placeholder={TOOL_EXAMPLE}
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {isWrong && <p role="alert">{P.toolsInvalid}</p>}
    </details>
  );
}
