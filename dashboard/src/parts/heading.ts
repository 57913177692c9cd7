/** Between the rows of a list: the value that the rows below it share, and their number. */
export class Heading {
  readonly value: string;
  readonly count: number;

  constructor(value: string, count: number) {
    this.value = value;
    this.count = count;
  }
}
