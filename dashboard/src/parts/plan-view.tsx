/** A plan as a list of actions with their reasons. */
import type { JSX } from 'preact';
import type { Plan } from '../types.ts';
import { T } from '../texts.ts';

export function PlanView({ plan }: { readonly plan: Plan }): JSX.Element {
  return (
    <section class="plan" aria-label={T.planHeading}>
      {plan.failing.length > 0 && (
        <div role="alert">
          {plan.failing.map(({ slot, reason, message }) => (
            <p key={slot}>
              <strong>{slot}</strong> {T.cannotLoad} {message}
              <small>
                {T.reason} {reason}
              </small>
            </p>
          ))}
        </div>
      )}
      <h3>{T.planHeading}</h3>
      {plan.changes.length === 0 ? (
        <p>{T.planNothing}</p>
      ) : (
        <ol>
          {plan.changes.map(({ slot, because, message }, index) => (
            <li key={index}>
              <strong>{slot}</strong>: {message}
              <small>
                {T.reason} {because}
              </small>
            </li>
          ))}
        </ol>
      )}
      {/* A slot that waits for its requests has nothing to stop yet: the text says so. */}
      <details open={plan.changes.length === 0}>
        <summary>{T.planText}</summary>
        <pre tabIndex={0}>{plan.text}</pre>
      </details>
    </section>
  );
}
