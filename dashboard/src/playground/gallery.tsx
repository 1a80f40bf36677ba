/** Images that the service caches. The client fetches them, because an `img` element would not send the token. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import type { KeptImage } from '../decide/images.ts';
import { P } from '../texts-playground.ts';
import { T } from '../texts.ts';

interface GalleryProps {
  readonly images: readonly KeptImage[];
  readonly onRemove: (url: string) => void;
}

export function Gallery({ images, onRemove }: GalleryProps): JSX.Element {
  return (
    <section class="panel result">
      <h2>{P.gallery}</h2>
      {images.length === 0 && <p class="why">{P.galleryEmpty}</p>}
      <ul class="gallery">
        {images.map((image) => (
          <GalleryImage key={image.url} image={image} onRemove={() => onRemove(image.url)} />
        ))}
      </ul>
    </section>
  );
}

function GalleryImage({ image: { url, prompt }, onRemove }: { readonly image: KeptImage; readonly onRemove: () => void }): JSX.Element {
  const { client } = useApp();
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
          <a href={shown} download="image.png">
            {T.download}
          </a>
        )}
        <button type="button" class="quiet" onClick={onRemove}>
          {P.remove}
        </button>
      </div>
    </li>
  );
}
