/** The image that is edited, and the mask that the user paints over it. */
import type { JSX, TargetedPointerEvent } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Table } from '../decide/patch.ts';
import { Button } from '../parts/button.tsx';
import { P } from '../texts-playground.ts';

export interface ImageEdit {
  readonly image: OffscreenCanvas;
  /** Painted where the image is to change, and as large as it. Undefined: the whole image is edited. */
  readonly mask: HTMLCanvasElement | undefined;
}

/** The service draws no larger ones. */
const MAX_SIDE = 2048;

/** As the browser shows it, so that the mask fits. Rejects if it is no image. */
export async function readImage(source: string | File): Promise<OffscreenCanvas> {
  const image = new Image();
  image.src = source instanceof File ? URL.createObjectURL(source) : source;
  await image.decode();
  const { naturalWidth: width, naturalHeight: height } = image;
  const scale = Math.min(1, MAX_SIDE / Math.max(width, height));
  const canvas = new OffscreenCanvas(Math.round(width * scale), Math.round(height * scale));
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  if (source instanceof File) URL.revokeObjectURL(image.src);
  return canvas;
}

/** The form of `/v1/images/edits`. */
export async function editForm(fields: Table, { image, mask: painted }: ImageEdit): Promise<FormData> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, String(value));
  form.set('image', await image.convertToBlob(), 'image.png');
  if (painted === undefined) return form;
  const mask = new OffscreenCanvas(painted.width, painted.height);
  const context = mask.getContext('2d');
  context?.fillRect(0, 0, mask.width, mask.height);
  // It is transparent where it was painted.
  if (context !== null) context.globalCompositeOperation = 'destination-out';
  context?.drawImage(painted, 0, 0);
  form.set('mask', await mask.convertToBlob(), 'mask.png');
  return form;
}

interface MaskEditorProps {
  readonly edit: ImageEdit;
  /** Undefined: a new image is generated instead. */
  readonly onEdit: (edit: ImageEdit | undefined) => void;
}

export function MaskEditor({ edit: { image, mask }, onEdit }: MaskEditorProps): JSX.Element {
  const [brush, setBrush] = useState(32);
  const shown = useRef<HTMLCanvasElement>(null);
  const from = useRef({ x: 0, y: 0 });
  const { width, height } = image;
  useLayoutEffect(() => shown.current?.getContext('2d')?.drawImage(image, 0, 0), []);
  const paint = (event: TargetedPointerEvent<HTMLCanvasElement>): void => {
    const { currentTarget: canvas, offsetX, offsetY, buttons, type } = event;
    const context = canvas.getContext('2d');
    if (buttons !== 1 || context === null) return;
    const scale = width / canvas.clientWidth;
    const to = { x: offsetX * scale, y: offsetY * scale };
    if (type === 'pointerdown') {
      canvas.setPointerCapture(event.pointerId);
      from.current = to;
      onEdit({ image, mask: canvas });
    }
    Object.assign(context, { lineCap: 'round', lineWidth: brush * scale, strokeStyle: 'magenta' });
    context.beginPath();
    context.moveTo(from.current.x, from.current.y);
    context.lineTo(to.x, to.y);
    context.stroke();
    from.current = to;
  };
  const clear = (): void => {
    mask?.getContext('2d')?.clearRect(0, 0, width, height);
    onEdit({ image, mask: undefined });
  };
  return (
    <fieldset>
      <legend>{P.source}</legend>
      <div class="mask-editor">
        <canvas ref={shown} width={width} height={height} role="img" aria-label={P.source} />
        <canvas width={width} height={height} aria-hidden="true" onPointerDown={paint} onPointerMove={paint} />
      </div>
      <p class="why">{P.maskHint}</p>
      <label>
        {P.brush}
        <input type="range" min={4} max={128} value={brush} onInput={(event) => setBrush(event.currentTarget.valueAsNumber)} />
      </label>
      <div class="buttons">
        <Button label={P.clearMask} disabled={mask === undefined} onClick={clear} />
        <Button label={P.removeSource} onClick={() => onEdit(undefined)} />
      </div>
    </fieldset>
  );
}
