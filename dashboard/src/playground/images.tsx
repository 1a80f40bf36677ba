/** Generates and edits images, streamed with previews or saved to the gallery. */
import type { JSX, RefObject } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import * as images from '../decide/images.ts';
import { Button } from '../parts/button.tsx';
import { InputField, SelectField } from '../parts/fields.tsx';
import { P } from '../texts-playground.ts';
import { T } from '../texts.ts';
import { Gallery } from './gallery.tsx';
import { editForm, MaskEditor, readImage, type ImageEdit } from './mask-editor.tsx';
import { RunForm } from './run-form.tsx';
import { CodeSamples } from './code-samples.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';
import { eachEvent } from './use-request.ts';

const SIZES = ['512x512', '768x768', '1024x1024', '1024x768', '768x1024'];
const GALLERY_KEY = 'svc.gallery';
const PREVIEWS = 3;

interface ImageOptions extends images.ImageSettings {
  readonly isStreamed: boolean;
}

const NO_OPTIONS: ImageOptions = { ...images.readSettings(undefined), isStreamed: true };

export function Images(): JSX.Element {
  const { client } = useApp();
  const choice = useSlotChoice('image');
  const [options, setOptions] = useState(NO_OPTIONS);
  const [edit, setEdit] = useState<ImageEdit>();
  const [drawing, setDrawing] = useState(images.NOTHING_DRAWN);
  const [gallery, keep] = useGallery();
  const promptField = useRef<HTMLTextAreaElement>(null);
  const body = images.imageBody(choice.slot, options);
  const draw = async (signal: AbortSignal): Promise<void> => {
    setDrawing(images.NOTHING_DRAWN);
    const fields = { ...body, ...(options.isStreamed ? { stream: true, partial_images: PREVIEWS } : { response_format: 'url' }) };
    const path = edit === undefined ? '/v1/images/generations' : '/v1/images/edits';
    const request = { method: 'POST', body: edit === undefined ? fields : await editForm(fields, edit), signal } as const;
    if (options.isStreamed)
      return await eachEvent(await client.fetch(path, request), (data) => setDrawing((before) => images.extendDrawing(before, data)));
    const answer = await client.fetchJson<unknown>(path, request);
    setDrawing({ ...images.NOTHING_DRAWN, ignored: images.ignoredOf(answer) });
    const made = images.cachedUrls(answer).map((url) => ({ url, ...images.readSettings(options) }));
    keep(images.addToGallery(gallery, made));
  };
  const startEdit = async (source: string | File): Promise<void> => {
    const image = await readImage(source).catch(() => undefined);
    setDrawing((before) => ({ ...before, failure: image === undefined ? P.imageUnreadable : '' }));
    if (image !== undefined) setEdit({ image, mask: undefined });
    promptField.current?.focus();
  };
  const use = (image: images.KeptImage): void => {
    setOptions({ ...options, ...images.readSettings(image) });
    promptField.current?.focus();
  };
  return (
    <>
      <SlotBar choice={choice} />
      <RunForm
        slot={choice.slot}
        label={edit === undefined ? P.generate : P.editImage}
        isComplete={options.prompt.trim() !== ''}
        onRun={draw}
        failure={drawing.failure}
      >
        <OptionFields options={options} onOptions={setOptions} promptField={promptField} />
        {edit === undefined ? <SourceField onSource={startEdit} /> : <MaskEditor key={edit.image} edit={edit} onEdit={setEdit} />}
      </RunForm>
      <Result drawing={drawing} prompt={options.prompt} onEdit={(url) => void startEdit(url)} />
      <Gallery
        images={gallery}
        onRemove={(url) => keep(gallery.filter((image) => image.url !== url))}
        onUse={use}
        onEdit={(url) => void startEdit(url)}
      />
      <CodeSamples kind={edit === undefined ? 'image' : edit.mask === undefined ? 'edit' : 'masked-edit'} body={body} />
    </>
  );
}

const SourceField = ({ onSource }: { readonly onSource: (source: File) => Promise<void> }): JSX.Element => (
  <label>
    {P.sourceFile}
    <input type="file" accept="image/*" onChange={({ currentTarget: { files } }) => void (files?.[0] && onSource(files[0]))} />
  </label>
);

function useGallery(): readonly [readonly images.KeptImage[], (next: readonly images.KeptImage[]) => void] {
  const [gallery, setGallery] = useState(() => images.readGallery(localStorage.getItem(GALLERY_KEY)));
  const keep = (next: readonly images.KeptImage[]): void => {
    localStorage.setItem(GALLERY_KEY, JSON.stringify(next));
    setGallery(next);
  };
  return [gallery, keep];
}

interface OptionFieldsProps {
  readonly options: ImageOptions;
  readonly onOptions: (options: ImageOptions) => void;
  readonly promptField: RefObject<HTMLTextAreaElement | null>;
}

function OptionFields({ options, onOptions, promptField }: OptionFieldsProps): JSX.Element {
  const set = (changed: Partial<ImageOptions>): void => onOptions({ ...options, ...changed });
  return (
    <>
      <label>
        {P.prompt}
        <textarea ref={promptField} rows={3} value={options.prompt} onInput={(event) => set({ prompt: event.currentTarget.value })} />
      </label>
      <InputField label={P.negative} value={options.negative} onValue={(negative) => set({ negative })} />
      <div class="fields">
        <SelectField label={T.size} value={options.size} options={[['', P.modelDefault], ...SIZES]} onValue={(size) => set({ size })} />
        <InputField label={P.seed} type="number" min={0} value={options.seed} placeholder={P.seedHint} onValue={(seed) => set({ seed })} />
        <InputField
          label={P.steps}
          type="number"
          min={1}
          value={options.steps}
          placeholder={P.modelDefault}
          onValue={(steps) => set({ steps })}
        />
        <SelectField
          label={P.output}
          value={options.isStreamed ? 'stream' : 'gallery'}
          options={[
            ['stream', P.withPreviews],
            ['gallery', P.keepInGallery],
          ]}
          onValue={(output) => set({ isStreamed: output === 'stream' })}
        />
      </div>
    </>
  );
}

interface ResultProps {
  readonly drawing: images.Drawing;
  readonly prompt: string;
  readonly onEdit: (url: string) => void;
}

function Result({ drawing: { preview, done, ignored }, prompt, onEdit }: ResultProps): JSX.Element | null {
  if (preview === undefined && done.length === 0 && ignored.length === 0) return null;
  return (
    <section class="drawn">
      {ignored.length > 0 && <p class="why">{P.ignored(ignored)}</p>}
      {preview !== undefined && <img class="preview" src={preview} alt={`${P.generating}: ${prompt}`} />}
      {done.map((url, index) => (
        <figure key={index}>
          <img src={url} alt={prompt} />
          <figcaption class="links">
            <a href={url} download={`image-${index + 1}.png`}>
              {T.download}
            </a>
            <Button label={P.edit} look="quiet" onClick={() => onEdit(url)} />
          </figcaption>
        </figure>
      ))}
    </section>
  );
}
