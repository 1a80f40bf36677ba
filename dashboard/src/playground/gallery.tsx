/** Images that the service caches. The client fetches them, because an `img` element would not send the token. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import type { KeptImage } from '../decide/images.ts';
import { Button } from '../parts/button.tsx';
import { P } from '../texts-playground.ts';
import { T } from '../texts.ts';

interface GalleryProps {
  readonly images: readonly KeptImage[];
  readonly onRemove: (url: string) => void;
  /** Takes over prompt and settings. */
  readonly onUse: (image: KeptImage) => void;
  /** The URL is valid during the call, and until the image has been read. */
  readonly onEdit: (url: string) => void;
}

export function Gallery({ images, ...actions }: GalleryProps): JSX.Element {
  return (
    <section class="panel result">
      <h2>{P.gallery}</h2>
      {images.length === 0 && <p class="why">{P.galleryEmpty}</p>}
      <ul class="gallery">
        {images.map((image) => (
          <GalleryImage key={image.url} image={image} {...actions} />
        ))}
      </ul>
    </section>
  );
}

interface GalleryImageProps extends Omit<GalleryProps, 'images'> {
  readonly image: KeptImage;
}

function GalleryImage({ image, onRemove, onUse, onEdit }: GalleryImageProps): JSX.Element {
  const { client } = useApp();
  const { url, prompt } = image;
  const [shown, setShown] = useState('');
  const [gone, setGone] = useState(false);
  useEffect(() => {
    const leave = new AbortController();
    let made = '';
    const read = async (): Promise<void> => {
      made = URL.createObjectURL(await (await client.fetch(url, { signal: leave.signal })).blob());
      if (leave.signal.aborted) URL.revokeObjectURL(made);
      else setShown(made);
    };
    read().catch(() => {
      if (!leave.signal.aborted) setGone(true);
    });
    return () => {
      leave.abort();
      URL.revokeObjectURL(made);
    };
  }, [url]);
  return (
    <li>
      {gone ? <p class="why">{P.expired}</p> : shown !== '' && <img src={shown} alt={prompt} />}
      <p title={prompt}>{prompt}</p>
      <div class="links">
        {shown !== '' && (
          <>
            <a href={shown} download="image.png">
              {T.download}
            </a>
            <Button label={P.edit} look="quiet" onClick={() => onEdit(shown)} />
          </>
        )}
        <Button label={P.useAgain} look="quiet" onClick={() => onUse(image)} />
        <Button label={P.remove} look="quiet" onClick={() => onRemove(url)} />
      </div>
    </li>
  );
}
