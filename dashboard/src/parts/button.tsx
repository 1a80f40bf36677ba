import type { JSX } from 'preact';

interface ButtonProps {
  readonly label: string;
  /** For screen readers. Default: the label. */
  readonly name?: string;
  readonly look?: 'main' | 'danger' | 'quiet';
  readonly disabled?: boolean;
  /** Default: submits the form. */
  readonly onClick?: () => void;
}

export const Button = ({ label, name, look, onClick, disabled = false }: ButtonProps): JSX.Element => (
  <button type={onClick === undefined ? 'submit' : 'button'} class={look ?? ''} aria-label={name} disabled={disabled} onClick={onClick}>
    {label}
  </button>
);
