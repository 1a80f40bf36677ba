/** Progress, speed and time left of a download. */
import type { JSX } from 'preact';
import { formatBytes, formatSeconds } from '../decide/format.ts';
import { T } from '../texts.ts';
import type { Progress } from '../types.ts';

export function DownloadBar({ progress }: { readonly progress: Progress }): JSX.Element {
  const { what, done_bytes: done, total_bytes: total, bytes_per_second: speed, seconds_left: left } = progress;
  return (
    <div class="download">
      <progress aria-label={what} max={total ?? 1} value={total === null ? undefined : done} />
      <small>
        {formatBytes(done)}
        {total !== null && ` / ${formatBytes(total)}`}
        {speed !== null && ` · ${formatBytes(speed)}/s`}
        {left !== null && ` · ${formatSeconds(left)} ${T.left}`}
      </small>
    </div>
  );
}
