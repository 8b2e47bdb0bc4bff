// An answer as the page uses it. The points of curves come as numbers of their own: for each curve the times, and then the values. The text has how many there are.

const wholeAnswer = (text, numbers) => {
  const answer = JSON.parse(text);
  let at = 0;
  const take = (count) => Array.from(numbers.subarray(at, (at += count)));
  if (answer.points) answer.points = answer.points.map((count) => [take(count), take(count)]);
  return answer;
};
