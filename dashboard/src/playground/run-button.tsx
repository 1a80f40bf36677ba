/** Starts and stops a request, and shows its progress and error. */
import type { JSX } from 'preact';
import { P } from '../texts-playground.ts';
import { Waiting } from './slot-choice.tsx';
import type { RunningRequest } from './use-request.ts';

interface RunButtonProps {
  readonly request: RunningRequest;
  readonly label: string;
  readonly slot: string;
  readonly canRun: boolean;
}

/** Submits the surrounding form. */
export function RunButton({ request, label, slot, canRun }: RunButtonProps): JSX.Element {
  return (
    <>
      <div class="buttons end">
        {request.running ? (
          <button type="button" onClick={() => request.stop()}>
            {P.stop}
          </button>
        ) : (
          <button type="submit" class="main" disabled={!canRun}>
            {label}
          </button>
        )}
      </div>
      {request.running && <Waiting slot={slot} />}
      {request.failure !== '' && <p role="alert">{request.failure}</p>}
    </>
  );
}
